//! Regions, zones, nodes by name, and what a topic must survive.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::limits::PLACE_NAME_BYTES_MAX;

/// The name of a region, zone or node does not follow the grammar.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "{name:?} can't be the name of a {kind}: it must have 1 to {PLACE_NAME_BYTES_MAX} lower-case \
     letters, digits, '-' and '.', and begin with a letter or digit"
)]
pub struct InvalidPlaceName {
    name: String,
    kind: &'static str,
}

macro_rules! place_name {
    ($(#[$doc:meta])* $type:ident, $kind:literal) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub struct $type(Arc<str>);

        impl $type {
            /// Checks a name.
            ///
            /// # Errors
            /// [`InvalidPlaceName`] when it does not follow the grammar.
            pub fn parse(name: &str) -> Result<Self, InvalidPlaceName> {
                match is_place_name(name) {
                    true => Ok($type(name.into())),
                    false => Err(InvalidPlaceName { name: name.into(), kind: $kind }),
                }
            }

            /// The name.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

place_name! {
    /// A named site. Cheap to clone.
    RegionName, "region"
}
place_name! {
    /// A failure domain inside a region. Cheap to clone.
    ZoneName, "zone"
}
place_name! {
    /// What an operator calls a node. At any time one node of the cluster has it. Cheap to clone.
    NodeName, "node"
}

/// What the shards of a topic must survive without losing an acknowledged message or going away.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum SurvivalGoal {
    /// The loss of a zone: voters in the home region only, at local latency.
    Zone,
    /// The loss of a region: voters over several regions.
    Region,
}

impl fmt::Display for SurvivalGoal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            SurvivalGoal::Zone => "zone",
            SurvivalGoal::Region => "region",
        })
    }
}

/// Names of hosts pass, so that a node may be called like its machine.
fn is_place_name(name: &str) -> bool {
    let alphanumeric = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    (1..=PLACE_NAME_BYTES_MAX).contains(&name.len())
        && alphanumeric(name.as_bytes()[0])
        && name
            .bytes()
            .all(|byte| alphanumeric(byte) || byte == b'-' || byte == b'.')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_follow_the_grammar() {
        let longest = "a".repeat(PLACE_NAME_BYTES_MAX);
        for name in ["a", "eu-west1", "7", "node-1.example.org", &longest] {
            assert_eq!(RegionName::parse(name).unwrap().as_str(), name);
        }
        let too_long = "a".repeat(PLACE_NAME_BYTES_MAX + 1);
        for name in ["", "EU", "-a", ".a", "a b", "a/b", "ä", &too_long] {
            assert!(NodeName::parse(name).is_err(), "{name:?}");
        }
        let refused = ZoneName::parse("Z").unwrap_err().to_string();
        assert!(refused.contains("zone"), "{refused}");
    }
}

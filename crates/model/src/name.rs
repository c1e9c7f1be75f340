//! Names of resources: `projects/{project}/topics/{id}` and `projects/{project}/subscriptions/{id}`.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::limits::{RESOURCE_ID_BYTES_MAX, RESOURCE_ID_BYTES_MIN};

/// What a subscription shows as its topic once the topic is deleted.
pub const DELETED_TOPIC: &str = "_deleted-topic_";

/// A name does not follow the grammar of its kind.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "Invalid resource name given (name={name}). It must be projects/PROJECT/{collection}/ID, where \
     ID has 3 to 255 characters, begins with a letter, has only letters, digits and -._~+%, and \
     does not begin with goog."
)]
pub struct InvalidName {
    name: String,
    collection: &'static str,
}

macro_rules! resource_name {
    ($(#[$doc:meta])* $type:ident, $collection:literal) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub struct $type(Arc<str>);

        impl $type {
            /// Checks a full name.
            ///
            /// # Errors
            /// [`InvalidName`] when it does not follow the grammar.
            pub fn parse(name: &str) -> Result<Self, InvalidName> {
                match split(name, $collection) {
                    Some((project, id)) if project_is_valid(project) && id_is_valid(id) => {
                        Ok($type(name.into()))
                    }
                    _ => Err(InvalidName { name: name.into(), collection: $collection }),
                }
            }

            /// The whole name.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }

            /// The project part of the name.
            #[must_use]
            pub fn project(&self) -> ProjectId {
                ProjectId(self.parts().0.into())
            }

            /// The last part of the name.
            #[must_use]
            pub fn id(&self) -> &str {
                self.parts().1
            }

            fn parts(&self) -> (&str, &str) {
                split(&self.0, $collection).expect("the name was checked when it was made")
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

resource_name! {
    /// `projects/{project}/topics/{id}`. Cheap to clone.
    TopicName, "topics"
}
resource_name! {
    /// `projects/{project}/subscriptions/{id}`. Cheap to clone.
    SubscriptionName, "subscriptions"
}

/// The id or number of a project. Orderly keeps no projects: any well-formed one exists.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ProjectId(Arc<str>);

impl ProjectId {
    /// Checks `projects/{project}`.
    ///
    /// # Errors
    /// [`InvalidName`] when it has another form.
    pub fn parse(name: &str) -> Result<Self, InvalidName> {
        match name.strip_prefix("projects/") {
            Some(project) if project_is_valid(project) => Ok(ProjectId(project.into())),
            _ => Err(InvalidName {
                name: name.into(),
                collection: "...",
            }),
        }
    }

    /// The project without `projects/`.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

fn split<'a>(name: &'a str, collection: &str) -> Option<(&'a str, &'a str)> {
    let (project, rest) = name.strip_prefix("projects/")?.split_once('/')?;
    let id = rest.strip_prefix(collection)?.strip_prefix('/')?;
    Some((project, id))
}

/// A project may be domain-scoped (`example.com:project`), so it may have dots and a colon.
fn project_is_valid(project: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~+%:".contains(&byte);
    (1..=RESOURCE_ID_BYTES_MAX).contains(&project.len()) && project.bytes().all(allowed)
}

fn id_is_valid(id: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~+%".contains(&byte);
    (RESOURCE_ID_BYTES_MIN..=RESOURCE_ID_BYTES_MAX).contains(&id.len())
        && id.as_bytes()[0].is_ascii_alphabetic()
        && id.bytes().all(allowed)
        && !id.starts_with("goog")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn topic(id: &str) -> Result<TopicName, InvalidName> {
        TopicName::parse(&format!("projects/p/topics/{id}"))
    }

    #[test]
    fn ids_follow_the_grammar() {
        let longest = "a".repeat(255);
        for id in ["abc", "aA.~+%-_9", "GOOG-x", &longest] {
            assert_eq!(topic(id).unwrap().id(), id);
        }
        let too_long = "a".repeat(256);
        for id in ["", "ab", "1abc", "goog-x", "a/b", "a b", "äbc", &too_long] {
            assert!(topic(id).is_err(), "{id:?}");
        }
    }

    #[test]
    fn the_collection_must_be_the_right_one() {
        assert!(TopicName::parse("projects/p/subscriptions/abc").is_err());
        assert!(TopicName::parse("projects//topics/abc").is_err());
        assert!(TopicName::parse("_deleted-topic_").is_err());
        let name = SubscriptionName::parse("projects/example.com:p/subscriptions/abc").unwrap();
        assert_eq!(name.project().as_str(), "example.com:p");
    }

    #[test]
    fn a_project_has_one_part() {
        assert_eq!(ProjectId::parse("projects/p").unwrap().as_str(), "p");
        assert!(ProjectId::parse("projects/p/topics/abc").is_err());
        assert!(ProjectId::parse("p").is_err());
    }
}

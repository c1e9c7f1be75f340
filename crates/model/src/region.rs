//! Regions, zones, and what a topic's shards must survive.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// A named site.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct RegionName(pub Arc<str>);

/// A failure domain inside a region.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ZoneName(pub Arc<str>);

/// What the shards of a topic must survive without losing an acknowledged message or going away.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum SurvivalGoal {
    /// The loss of a zone: voters in the home region only, at local latency.
    Zone,
    /// The loss of a region: voters over several regions.
    Region,
}

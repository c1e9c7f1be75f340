//! The regions of the cluster, by name. A row is made with the region's first node, and stays.

use model::{NodeId, RegionName, SurvivalGoal};
use serde::{Deserialize, Serialize};

use super::NameKey;
use crate::table::Row;

/// A region as the cluster knows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Region {
    /// Its name.
    pub name: RegionName,
    /// The first node that it had: tells which region was there first.
    pub first_node: NodeId,
    /// How many shards at home here are wanted that survive the loss of a region.
    pub region_shards: u16,
    /// How many shards at home here are wanted that have no voter elsewhere.
    pub zone_shards: u16,
}

impl Region {
    /// A region whose first node has just come, in a cluster with so many shards for each region.
    ///
    /// One more shard never leaves the region, for topics whose messages must not.
    #[must_use]
    pub fn new(name: RegionName, first_node: NodeId, shards_per_region: u16) -> Self {
        Region {
            name,
            first_node,
            region_shards: shards_per_region,
            zone_shards: 1,
        }
    }

    /// How many shards of a class are wanted.
    #[must_use]
    pub fn shards(&self, goal: SurvivalGoal) -> u16 {
        match goal {
            SurvivalGoal::Zone => self.zone_shards,
            SurvivalGoal::Region => self.region_shards,
        }
    }
}

impl Row for Region {
    const TABLE: u8 = 69;
    type Key = NameKey;
}

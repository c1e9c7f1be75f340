//! Where the replicas of each group are wanted. A row is there as long as its group: for ever.

use std::collections::BTreeSet;

use model::limits::SHARDS_MAX;
use model::{GroupId, NodeId, RegionName, ShardNumber, SurvivalGoal};
use serde::{Deserialize, Serialize};

use crate::table::{Row, RowKey};

const _: () = assert!(SHARDS_MAX < u16::MAX, "the last number bounds scans");

/// By group: the control group, the registry groups, then the shards, each by number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PlacementKey(pub GroupId);

/// Where the replicas of a group are wanted. Its leader compares this with what is, and takes one
/// step at a time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Placement {
    /// The group.
    pub group: GroupId,
    /// Where its leader lives when that region is well.
    pub home: RegionName,
    /// What it must survive as soon as the cluster is large enough: with fewer than three regions,
    /// a group whose goal is a region has its voters at home all the same.
    pub goal: SurvivalGoal,
    /// Who is wanted to vote.
    pub voters: BTreeSet<NodeId>,
    /// Who is wanted to have a copy without a vote.
    pub learners: BTreeSet<NodeId>,
    /// Who initialises the group, with exactly these as its voters, while it is not `founded`.
    /// Never changes.
    pub founders: BTreeSet<NodeId>,
    /// Whether the group exists. From then on nobody ever initialises it again: an empty replica
    /// waits for its leader.
    pub founded: bool,
    /// How often the placement was changed: a change must name the version that it is based on.
    pub version: u64,
}

impl Placement {
    /// The placement of a group that does not exist yet.
    #[must_use]
    pub fn new(
        group: GroupId,
        home: RegionName,
        goal: SurvivalGoal,
        voters: BTreeSet<NodeId>,
    ) -> Self {
        Placement {
            group,
            home,
            goal,
            founders: voters.clone(),
            voters,
            learners: BTreeSet::new(),
            founded: false,
            version: 0,
        }
    }
}

impl PlacementKey {
    /// The bounds of all groups.
    #[must_use]
    pub fn all() -> (Self, Self) {
        let last = GroupId::Shard(ShardNumber(u16::MAX));
        (PlacementKey(GroupId::Control), PlacementKey(last))
    }
}

impl Row for Placement {
    const TABLE: u8 = 71;
    type Key = PlacementKey;
}

impl RowKey for PlacementKey {
    fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.0.to_number().to_be_bytes());
    }

    fn read(bytes: &[u8]) -> Option<Self> {
        let number = u32::from_be_bytes(bytes.try_into().ok()?);
        GroupId::from_number(number).map(PlacementKey)
    }
}

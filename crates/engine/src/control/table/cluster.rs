//! The cluster itself. One row.

use model::{ClusterSecret, NodeId, ShardNumber};
use serde::{Deserialize, Serialize};

use crate::table::{Row, RowKey};

/// The only key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClusterKey;

/// What was decided when the cluster was founded, and the numbers that come next.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cluster {
    /// The key of the cluster's hashes. Never changes.
    pub secret: ClusterSecret,
    /// The cluster's id, as every folder and connection names it. Never changes.
    pub name: String,
    /// How many shards a new region gets, beside the one that never leaves it.
    pub shards_per_region: u16,
    /// How many registry groups there are, numbered from one. Never changes: they are found by
    /// the hash of a key.
    pub registries: u16,
    /// The number of the next shard.
    pub next_shard: ShardNumber,
    /// The id of the next node.
    pub next_node: NodeId,
}

impl Row for Cluster {
    const TABLE: u8 = 64;
    type Key = ClusterKey;
}

impl RowKey for ClusterKey {
    fn write(&self, _out: &mut Vec<u8>) {}

    fn read(bytes: &[u8]) -> Option<Self> {
        bytes.is_empty().then_some(ClusterKey)
    }
}

//! The cluster itself. One row.

use model::ClusterSecret;
use serde::{Deserialize, Serialize};

use crate::table::{Row, RowKey};

/// The only key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClusterKey;

/// What was decided when the cluster was founded. Never changes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cluster {
    /// The key of the cluster's hashes.
    pub secret: ClusterSecret,
    /// How many shards there are, numbered from one.
    pub shards: u16,
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

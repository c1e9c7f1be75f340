//! The shard itself: its counters. One row.

use model::Timestamp;
use serde::{Deserialize, Serialize};

use super::{Row, RowKey};

/// The only key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShardKey;

/// The counters of a shard.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shard {
    /// The counter of the newest message id; the next message gets one more.
    pub counter: u64,
    /// The greatest stamp applied so far: time never goes back.
    pub time: Timestamp,
}

impl Row for Shard {
    const TABLE: u8 = 1;
    type Key = ShardKey;
}

impl RowKey for ShardKey {
    fn write(&self, _out: &mut Vec<u8>) {}

    fn read(bytes: &[u8]) -> Option<Self> {
        bytes.is_empty().then_some(ShardKey)
    }
}

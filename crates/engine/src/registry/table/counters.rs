//! The counters of a registry group. One row.

use model::{Epoch, MessageId};
use serde::{Deserialize, Serialize};

use crate::table::{Row, RowKey};

/// The only key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CountersKey;

/// Neither ever goes back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counters {
    /// The newest epoch that was given to a pin of this group.
    pub epoch: Epoch,
    /// No key that was released or moved has had a greater id.
    pub id_floor: MessageId,
}

impl Row for Counters {
    const TABLE: u8 = 128;
    type Key = CountersKey;
}

impl RowKey for CountersKey {
    fn write(&self, _out: &mut Vec<u8>) {}

    fn read(bytes: &[u8]) -> Option<Self> {
        bytes.is_empty().then_some(CountersKey)
    }
}

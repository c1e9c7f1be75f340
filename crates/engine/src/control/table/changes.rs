//! When topics and subscriptions changed last. One row.

use serde::{Deserialize, Serialize};

use crate::table::{Row, RowKey};

/// The only key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChangesKey;

/// The last changes of topics and subscriptions, each by the index of its entry; zero before the
/// first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Changes {
    /// The last one of all.
    pub last: u64,
    /// The last one after which a name was free: what is not there, is not there since then at the
    /// latest.
    pub last_deletion: u64,
}

impl Row for Changes {
    const TABLE: u8 = 73;
    type Key = ChangesKey;
}

impl RowKey for ChangesKey {
    fn write(&self, _out: &mut Vec<u8>) {}

    fn read(bytes: &[u8]) -> Option<Self> {
        bytes.is_empty().then_some(ChangesKey)
    }
}

//! The format level of the cluster. One row, from the first raise on.

use model::FormatLevel;
use serde::{Deserialize, Serialize};

use crate::table::{Row, RowKey};

/// The only key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FormatKey;

/// What all nodes of the cluster know.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Format {
    /// The level. It never goes back.
    pub level: FormatLevel,
}

impl Row for Format {
    const TABLE: u8 = 74;
    type Key = FormatKey;
}

impl RowKey for FormatKey {
    fn write(&self, _out: &mut Vec<u8>) {}

    fn read(bytes: &[u8]) -> Option<Self> {
        bytes.is_empty().then_some(FormatKey)
    }
}

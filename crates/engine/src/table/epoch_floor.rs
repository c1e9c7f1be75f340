//! The newest pin of each registry group that this shard has let go of.

use model::{Epoch, RegistryNumber};
use serde::{Deserialize, Serialize};

use super::{Row, RowKey};

/// By registry group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct EpochFloorKey(pub RegistryNumber);

/// A strand without a row may have been open at any epoch up to this one: it opens only above. The
/// row stands for every row of a strand that ever went, so it never goes itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EpochFloor {
    /// The highest epoch of any strand that was dropped, or was to be sealed and had no row.
    pub epoch: Epoch,
}

impl Row for EpochFloor {
    const TABLE: u8 = 14;
    type Key = EpochFloorKey;
}

impl RowKey for EpochFloorKey {
    fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.0.0.to_be_bytes());
    }

    fn read(bytes: &[u8]) -> Option<Self> {
        let number = <[u8; 2]>::try_from(bytes).ok()?;
        Some(EpochFloorKey(RegistryNumber(u16::from_be_bytes(number))))
    }
}

//! Pins that seem to have no strand here: if so, none opens at their epochs any more.

use model::{Epoch, RegistryNumber, sabotage};
use serde::{Deserialize, Serialize};

use super::{Outcome, Reply, open, read};
use crate::Fault;
use crate::kv::Overlay;
use crate::table::strand::StrandKey;

/// Raises the shard's floor over the epochs of strands that have no row. Only then may their pins
/// be removed: an answer to an earlier claim, come late, opens nothing.
///
/// Which of them have a row is in the rows: the leader looks there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SealAbsent {
    /// The group that has the pins.
    pub registry: RegistryNumber,
    /// The strands, with the epochs of their pins.
    pub strands: Vec<(StrandKey, Epoch)>,
}

impl SealAbsent {
    pub(super) fn apply(&self, overlay: &mut Overlay<'_>) -> Result<Outcome, Fault> {
        for (key, epoch) in &self.strands {
            let strand = read::strand(overlay, key.topic, key.strand)?;
            if strand.is_none() && !sabotage!("sweep-forgets-its-epoch") {
                open::raise_floor(overlay, self.registry, *epoch)?;
            }
        }
        Ok(Reply::Done.into())
    }
}

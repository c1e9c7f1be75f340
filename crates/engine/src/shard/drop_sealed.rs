//! Sealed strands go, because the shard does not own their keys any more.

use model::limits::SWEEP_ROWS_MAX;
use model::{Epoch, Incarnation, RegistryNumber, sabotage};
use serde::{Deserialize, Serialize};

use super::read::{self, LAST_INCARNATION};
use super::{Effect, Outcome, Reply, open};
use crate::Fault;
use crate::kv::{Overlay, ViewExt};
use crate::table::lane::{Lane, LaneKey};
use crate::table::sealed::Sealed;
use crate::table::strand::{Strand, StrandKey};

/// Drops strands that are sealed at exactly the given epochs, with all that hangs on them. Their
/// epochs stay behind as the shard's floor.
///
/// Stops after [`SWEEP_ROWS_MAX`] rows. What is still there is still sealed, and so still work.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DropSealed {
    /// The group that has, or had, the pins.
    pub registry: RegistryNumber,
    /// The strands.
    pub strands: Vec<(StrandKey, Epoch)>,
}

impl DropSealed {
    pub(super) fn apply(&self, overlay: &mut Overlay<'_>) -> Result<Outcome, Fault> {
        let mut effects = Vec::new();
        let mut touched = 0;
        for (key, epoch) in &self.strands {
            if touched >= SWEEP_ROWS_MAX {
                break;
            }
            let strand = read::strand(overlay, key.topic, key.strand)?;
            let is_meant = |strand: &Strand| {
                strand.sealed && (strand.epoch == *epoch || sabotage!("drop-without-its-epoch"))
            };
            let Some(strand) = strand.filter(is_meant) else {
                continue;
            };
            touched += 2 + drop_lanes(overlay, *key)?;
            overlay.delete::<Strand>(key);
            overlay.delete::<Sealed>(key);
            if !sabotage!("drop-forgets-its-epoch") {
                open::raise_floor(overlay, self.registry, strand.epoch)?;
            }
            effects.push(Effect::Dropped { key: *key });
        }
        let reply = Reply::Done;
        Ok(Outcome { reply, effects })
    }
}

/// Says how many lanes there were: at most one for each of the topic's subscriptions.
fn drop_lanes(overlay: &mut Overlay<'_>, key: StrandKey) -> Result<usize, Fault> {
    let lane = |subscription| LaneKey {
        topic: key.topic,
        strand: key.strand,
        subscription,
    };
    let lanes = overlay.rows::<Lane>(&lane(Incarnation(0)), &lane(LAST_INCARNATION));
    let lanes = lanes.map(|row| Ok(row?.0)).collect::<Result<Vec<_>, _>>()?;
    for lane in &lanes {
        overlay.delete::<Lane>(lane);
    }
    Ok(lanes.len())
}

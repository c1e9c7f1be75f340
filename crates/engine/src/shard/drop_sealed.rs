//! Sealed strands go, because the shard does not own their keys any more.

use model::limits::SWEEP_ROWS_MAX;
use model::{Epoch, Incarnation, MessageId, RegistryNumber, sabotage};
use serde::{Deserialize, Serialize};

use super::backlog::deliveries;
use super::read::{self, LAST_INCARNATION};
use super::{Effect, Outcome, Reply, copy, open, run_release};
use crate::Fault;
use crate::kv::{Overlay, ViewExt};
use crate::table::arrived::Arrived;
use crate::table::delivery::{Delivery, DeliveryKey};
use crate::table::lane::{Lane, LaneKey};
use crate::table::run::{Run, RunKey};
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
            touched += drop_runs(overlay, *key, &strand, SWEEP_ROWS_MAX - touched)?;
            if touched >= SWEEP_ROWS_MAX {
                break;
            }
            touched += 3 + drop_lanes(overlay, *key)?;
            overlay.delete::<Strand>(key);
            overlay.delete::<Sealed>(key);
            overlay.delete::<Arrived>(key);
            if !sabotage!("drop-forgets-its-epoch") {
                open::raise_floor(overlay, self.registry, strand.epoch)?;
            }
            effects.push(Effect::Dropped { key: *key });
        }
        let reply = Reply::Done;
        Ok(Outcome { reply, effects })
    }
}

/// Drops runs with all that hangs on them, until about so many rows are touched; says how many.
/// What is left of the strand goes with the next command.
fn drop_runs(
    overlay: &mut Overlay<'_>,
    key: StrandKey,
    strand: &Strand,
    rows_max: usize,
) -> Result<usize, Fault> {
    if strand.runs == 0 {
        return Ok(0);
    }
    let subscriptions = subscriptions(overlay, key.topic)?;
    let runs = read::strand_runs(overlay, key.topic, key.strand, MessageId::ZERO);
    let runs = runs.take(rows_max).map(|row| Ok(row?.0.first));
    let runs = runs.collect::<Result<Vec<_>, Fault>>()?;
    let mut touched = 0;
    for first in runs {
        if touched >= rows_max {
            break;
        }
        touched += 4;
        let topic = key.topic;
        let run = RunKey { topic, first };
        let row = overlay.row::<Run>(&run)?;
        let row = row.ok_or_else(|| Fault::Missing(format!("run {run:?}")))?;
        run_release::release(overlay, run, &row)?;
        for subscription in &subscriptions {
            touched += drop_deliveries(overlay, *subscription, (first, &row))?;
        }
    }
    Ok(touched)
}

/// All that may have logged deliveries of a topic.
fn subscriptions(overlay: &Overlay<'_>, topic: Incarnation) -> Result<Vec<Incarnation>, Fault> {
    let attached = copy::attachments(overlay, topic)?.into_iter();
    let attached = attached.map(|(subscription, _)| subscription);
    attached
        .filter_map(|subscription| {
            let mut deliveries = deliveries(overlay, subscription);
            let first = deliveries.next()?;
            Some(first.map(|_| subscription))
        })
        .collect()
}

fn drop_deliveries(
    overlay: &mut Overlay<'_>,
    subscription: Incarnation,
    (first, run): (MessageId, &Run),
) -> Result<usize, Fault> {
    let key = |message| DeliveryKey {
        subscription,
        message,
    };
    let after = MessageId(run.last(first).0 + 1);
    let rows = overlay.rows::<Delivery>(&key(first), &key(after));
    // Ids of other shards stand between those of a run.
    let rows = rows.map(|row| Ok(row?.0));
    let rows = rows.collect::<Result<Vec<_>, Fault>>()?;
    let mut dropped = 0;
    for row in rows {
        if row.message.shard() == first.shard() {
            overlay.delete::<Delivery>(&row);
            dropped += 1;
        }
    }
    Ok(dropped)
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

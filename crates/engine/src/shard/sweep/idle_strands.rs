//! Strands without a key that are drained and idle. Those with a key are released, since they have
//! pins: see [`crate::shard::Seal`].

use model::limits::{STRAND_IDLE, SWEEP_ROWS_MAX};
use model::{Epoch, Incarnation, KeyHash, Timestamp};

use crate::Fault;
use crate::kv::{Overlay, ViewExt};
use crate::shard::Swept;
use crate::shard::read::{self, LAST_INCARNATION};
use crate::table::lane::{Lane, LaneKey};
use crate::table::strand::{Strand, StrandKey};

/// Ids go on growing without the row, since the shard's counter never goes back; and a lane
/// without a row stands where its attachment began, after which nothing of the strand is stored.
pub(super) fn sweep(
    overlay: &mut Overlay<'_>,
    topic: Incarnation,
    from: KeyHash,
    time: Timestamp,
) -> Result<Swept, Fault> {
    let strands = read::strands(overlay, topic, from).take(SWEEP_ROWS_MAX + 1);
    let strands = strands.collect::<Result<Vec<_>, _>>()?;
    let mut touched = 0;
    for (key, strand) in &strands {
        if touched >= SWEEP_ROWS_MAX {
            return Ok(Swept::MoreFrom(key.strand));
        }
        touched += 1;
        let is_idle = match model::sabotage!("strand-swept-with-its-backlog") {
            true => strand.published.plus(STRAND_IDLE) <= time,
            false => strand.is_idle(time),
        };
        if strand.epoch == Epoch(0) && is_idle {
            touched += release(overlay, *key)?;
        }
    }
    Ok(Swept::All)
}

/// Drops the strand with its lanes; says how many lanes. Their number is that of the topic's
/// subscriptions.
fn release(overlay: &mut Overlay<'_>, key: StrandKey) -> Result<usize, Fault> {
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
    overlay.delete::<Strand>(&key);
    Ok(lanes.len())
}

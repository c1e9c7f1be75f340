//! Strands that are drained and idle: so that state grows with the keys in use, not with all keys
//! that ever were.

use model::limits::{STRAND_IDLE, SWEEP_ROWS_MAX};
use model::{Incarnation, KeyHash, Timestamp};

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
        if (strand.runs == 0 || model::sabotage!("strand-swept-with-its-backlog"))
            && time.since(strand.published) >= STRAND_IDLE
        {
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

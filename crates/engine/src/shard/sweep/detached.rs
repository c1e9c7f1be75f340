//! What a detached subscription has left: runs that wait for it, lanes, deliveries. Its
//! settled-ack records go by age, like all others.

use model::limits::SWEEP_ROWS_MAX;
use model::{Incarnation, KeyHash, MessageId};

use crate::Fault;
use crate::kv::{Overlay, ViewExt};
use crate::shard::backlog::deliveries;
use crate::shard::read::{self, FIRST_STRAND};
use crate::shard::{Swept, run_release};
use crate::table::delivery::Delivery;
use crate::table::detached::{Detached, DetachedKey, Step};
use crate::table::holes::{Holes, HolesKey};
use crate::table::lane::{Lane, LaneKey};
use crate::table::run::{Run, RunKey};

/// Letting go of a run touches its own two rows, holes, lane, strand and garbage.
const RUNS_MAX: usize = SWEEP_ROWS_MAX / 6;
/// Each strand has one lane of the subscription.
const STRANDS_MAX: usize = SWEEP_ROWS_MAX / 2;

pub(super) fn sweep(
    overlay: &mut Overlay<'_>,
    topic: Incarnation,
    subscription: Incarnation,
) -> Result<Swept, Fault> {
    let key = DetachedKey {
        topic,
        subscription,
    };
    let Some(detached) = overlay.row::<Detached>(&key)? else {
        return Ok(Swept::All);
    };
    let next = match detached.next {
        Step::Runs(from) => Some(drop_runs(overlay, key, &detached, from)?),
        Step::Lanes(from) => Some(drop_lanes(overlay, key, from)?),
        Step::Deliveries => drop_deliveries(overlay, key)?,
    };
    match next {
        Some(next) => {
            overlay.put(&key, &Detached { next, ..detached });
            Ok(Swept::More)
        }
        None => {
            overlay.delete::<Detached>(&key);
            Ok(Swept::All)
        }
    }
}

fn drop_runs(
    overlay: &mut Overlay<'_>,
    key: DetachedKey,
    detached: &Detached,
    from: MessageId,
) -> Result<Step, Fault> {
    let runs = read::runs(overlay, key.topic, from).take(RUNS_MAX + 1);
    let runs = runs.collect::<Result<Vec<_>, _>>()?;
    for (number, (run_key, run)) in runs.iter().enumerate() {
        if run_key.first > detached.until {
            break;
        }
        if number == RUNS_MAX {
            return Ok(Step::Runs(run_key.first));
        }
        drop_run(overlay, key, detached, *run_key, run)?;
    }
    Ok(Step::Lanes(FIRST_STRAND))
}

/// The run stops waiting for the subscription, unless it did when the subscription finished it.
fn drop_run(
    overlay: &mut Overlay<'_>,
    key: DetachedKey,
    detached: &Detached,
    run_key: RunKey,
    run: &Run,
) -> Result<(), Fault> {
    let holes = HolesKey {
        topic: key.topic,
        first: run_key.first,
        subscription: key.subscription,
    };
    let finished = if detached.ordered && run.keyed() {
        let lane = overlay.row::<Lane>(&LaneKey {
            topic: key.topic,
            strand: run.strand,
            subscription: key.subscription,
        })?;
        let position = lane.map_or(detached.after, |lane| lane.position);
        position >= run.last(run_key.first)
    } else {
        match overlay.row::<Holes>(&holes)? {
            Some(holes) => holes == Holes::All,
            None => run_key.first <= detached.after,
        }
    };
    overlay.delete::<Holes>(&holes);
    match finished {
        true => Ok(()),
        false if model::sabotage!("detach-leaves-its-backlog") => Ok(()),
        false => run_release::finish(overlay, run_key),
    }
}

/// Lanes exist only where strands do.
fn drop_lanes(overlay: &mut Overlay<'_>, key: DetachedKey, from: KeyHash) -> Result<Step, Fault> {
    let strands = read::strands(overlay, key.topic, from).take(STRANDS_MAX + 1);
    let strands = strands.map(|row| Ok(row?.0.strand));
    let strands = strands.collect::<Result<Vec<_>, Fault>>()?;
    for strand in strands.iter().take(STRANDS_MAX) {
        let lane = LaneKey {
            topic: key.topic,
            strand: *strand,
            subscription: key.subscription,
        };
        if overlay.row::<Lane>(&lane)?.is_some() {
            overlay.delete::<Lane>(&lane);
        }
    }
    match strands.get(STRANDS_MAX) {
        Some(strand) => Ok(Step::Lanes(*strand)),
        None => Ok(Step::Deliveries),
    }
}

fn drop_deliveries(overlay: &mut Overlay<'_>, key: DetachedKey) -> Result<Option<Step>, Fault> {
    let found = deliveries(overlay, key.subscription).take(SWEEP_ROWS_MAX);
    let found = found.map(|row| Ok(row?.0)).collect::<Result<Vec<_>, _>>()?;
    for delivery in &found {
        overlay.delete::<Delivery>(delivery);
    }
    Ok((found.len() == SWEEP_ROWS_MAX).then_some(Step::Deliveries))
}

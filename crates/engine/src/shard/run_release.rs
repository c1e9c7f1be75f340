//! A run goes when no subscription waits for it any more, and everything that hangs on it too.

use model::{Incarnation, sabotage};

use super::read::{self, LAST_INCARNATION};
use crate::Fault;
use crate::kv::{Overlay, ViewExt};
use crate::table::garbage::{Garbage, GarbageKey};
use crate::table::holes::{Holes, HolesKey};
use crate::table::run::{PayloadAt, Run, RunKey};
use crate::table::strand::StrandKey;
use crate::table::strand_run::{StrandRun, StrandRunKey};

/// One subscription has finished the run. Said once for each that the run waits for.
pub(super) fn finish(overlay: &mut Overlay<'_>, key: RunKey) -> Result<(), Fault> {
    let run = overlay.row::<Run>(&key)?;
    let run = run.ok_or_else(|| Fault::Missing(format!("run {key:?}")))?;
    assert!(run.waiting > 0, "run {key:?} waits for nobody");
    let waiting = run.waiting - 1;
    if waiting > 0 && !sabotage!("run-goes-early") {
        overlay.put(&key, &Run { waiting, ..run });
        Ok(())
    } else {
        release(overlay, key, &run)
    }
}

/// The run goes, whoever waits for it.
pub(super) fn release(overlay: &mut Overlay<'_>, key: RunKey, run: &Run) -> Result<(), Fault> {
    overlay.delete::<Run>(&key);
    overlay.delete::<StrandRun>(&StrandRunKey {
        topic: key.topic,
        strand: run.strand,
        first: key.first,
    });
    release_holes(overlay, key)?;
    release_from_strand(overlay, key, run)?;
    if !sabotage!("payload-left-behind") {
        drop_payload(overlay, run.payload);
    }
    Ok(())
}

fn release_holes(overlay: &mut Overlay<'_>, key: RunKey) -> Result<(), Fault> {
    let of = |subscription| HolesKey {
        topic: key.topic,
        first: key.first,
        subscription,
    };
    let rows = overlay.rows::<Holes>(&of(Incarnation(0)), &of(LAST_INCARNATION));
    let keys = rows.map(|row| Ok(row?.0)).collect::<Result<Vec<_>, _>>()?;
    for key in keys {
        overlay.delete::<Holes>(&key);
    }
    Ok(())
}

fn release_from_strand(overlay: &mut Overlay<'_>, key: RunKey, run: &Run) -> Result<(), Fault> {
    let strand = read::strand(overlay, key.topic, run.strand)?;
    let mut strand = strand.ok_or_else(|| Fault::Missing(format!("strand of run {key:?}")))?;
    assert!(strand.runs > 0, "the strand of run {key:?} has no run");
    strand.runs -= 1;
    let key = StrandKey {
        topic: key.topic,
        strand: run.strand,
    };
    overlay.put(&key, &strand);
    Ok(())
}

/// Nothing refers to the payload: the store may remove it.
pub(super) fn drop_payload(overlay: &mut Overlay<'_>, at: PayloadAt) {
    overlay.put(&GarbageKey(at), &Garbage);
}

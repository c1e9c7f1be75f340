//! Settling in order: a lane's position moves over what is acknowledged from the front on, and
//! what is acknowledged behind it leaves marks.

mod progress;

use model::limits::LANE_MARKS_MAX;
use model::{MessageId, sabotage};

use super::settlement::{Ack, Settlement};
use super::{AckOutcome, read};
use crate::Fault;
use crate::kv::ViewExt;
use crate::table::lane::{Lane, LaneKey};
use crate::table::run::{Run, RunKey};
use progress::{Joint, Place, Progress};

/// Settles messages of one lane; the acks are in id order, and the first one's message is in `run`.
pub(super) fn settle(
    settlement: &mut Settlement<'_, '_>,
    run: (RunKey, Run),
    acks: &[Ack],
    outcomes: &mut [AckOutcome],
) -> Result<(), Fault> {
    let strand = run.1.strand;
    let only = only_run(settlement, run)?;
    let key = LaneKey {
        topic: settlement.topic,
        strand,
        subscription: settlement.subscription,
    };
    let before = settlement.overlay.row::<Lane>(&key)?;
    let before = before.unwrap_or_else(|| Lane {
        position: settlement.attachment.after,
        ..Lane::default()
    });
    let mut progress = Progress::new(settlement.topic, strand, &before, only);
    for ack in acks {
        progress.reach(settlement.overlay, ack.message)?;
        outcomes[ack.place] = settle_one(settlement, &before, &mut progress, ack)?;
    }
    let after = progress.finish(settlement.overlay, before.rewound.clone())?;
    advance(settlement, &key, only, &before, after)
}

/// The run, if it is the only stored one of its strand: then nobody has to search for others.
fn only_run(
    settlement: &Settlement<'_, '_>,
    (key, run): (RunKey, Run),
) -> Result<Option<Place>, Fault> {
    let strand = read::strand(settlement.overlay, key.topic, run.strand)?;
    let alone = strand.is_some_and(|strand| strand.runs == 1);
    Ok(alone.then(|| Place {
        first: key.first,
        last: run.last(key.first),
        before: MessageId::ZERO,
    }))
}

fn settle_one(
    settlement: &mut Settlement<'_, '_>,
    lane: &Lane,
    progress: &mut Progress,
    ack: &Ack,
) -> Result<AckOutcome, Fault> {
    let joint = match progress.covers(ack.message) {
        true => None,
        false => progress.joint(settlement.overlay, ack.message)?,
    };
    let Some(joint) = joint else {
        return settlement.again(ack);
    };
    if !settlement.has_right(ack)? || is_superseded(settlement, lane, ack) {
        return Ok(AckOutcome::Stale);
    }
    if ack.generation.is_some() {
        if settlement.exactly_once()
            && joint != Joint::Position
            && !sabotage!("exactly-once-acks-in-any-order")
        {
            return Ok(AckOutcome::Unordered);
        }
        if joint == Joint::Apart
            && progress.marks() >= LANE_MARKS_MAX
            && !sabotage!("marks-without-limit")
        {
            return Ok(AckOutcome::Stale);
        }
    }
    progress.settle(ack.message, joint);
    settlement.remember(ack);
    Ok(AckOutcome::Acknowledged)
}

/// Whether the message was to be sent again after this delivery of it.
fn is_superseded(settlement: &Settlement<'_, '_>, lane: &Lane, ack: &Ack) -> bool {
    let (false, Some(generation)) = (settlement.exactly_once(), ack.generation) else {
        return false;
    };
    if sabotage!("stale-ack-counts") {
        return false;
    }
    let mut rewound = lane.rewound.iter().rev();
    let last = rewound.find(|rewound| rewound.from <= ack.message);
    last.is_some_and(|rewound| generation < rewound.generation)
}

/// The one way in which a lane moves: writes it, and lets go of every message that it has passed.
fn advance(
    settlement: &mut Settlement<'_, '_>,
    key: &LaneKey,
    only: Option<Place>,
    before: &Lane,
    after: Lane,
) -> Result<(), Fault> {
    assert!(before.position <= after.position, "a position goes on");
    after.assert_marks_apart();
    if after == *before {
        return Ok(());
    }
    settlement.overlay.put(key, &after);
    let (from, to) = (before.position, after.position);
    let passed = match only {
        Some(only) if only.last <= from || only.first > to => Vec::new(),
        Some(only) => vec![(only.first, only.last)],
        None => passed(settlement, key, from, to)?,
    };
    for (first, last) in passed {
        let mut message = first.max(MessageId::new(before.position.counter() + 1, first.shard()));
        while message <= last.min(after.position) {
            settlement.forget_delivery(message)?;
            message = message.plus(1);
        }
        if last <= after.position {
            settlement.finish_run(first)?;
        }
    }
    Ok(())
}

/// First and last message of every run that has a message of `(from, to]`.
fn passed(
    settlement: &Settlement<'_, '_>,
    key: &LaneKey,
    from: MessageId,
    to: MessageId,
) -> Result<Vec<(MessageId, MessageId)>, Fault> {
    let mut passed = Vec::new();
    if from == to {
        return Ok(passed);
    }
    let view = &*settlement.overlay;
    if let Some((key, run)) = read::strand_run_floor(view, key.topic, key.strand, from)?
        && from < run.last(key.first)
    {
        passed.push((key.first, run.last(key.first)));
    }
    for run in read::strand_runs(view, key.topic, key.strand, MessageId(from.0 + 1)) {
        let (key, run) = run?;
        if key.first > to {
            break;
        }
        passed.push((key.first, run.last(key.first)));
    }
    Ok(passed)
}

impl Lane {
    /// Marks are in order, and none touches the position.
    pub(super) fn assert_marks_apart(&self) {
        let mut before = self.position;
        for (start, end) in &self.marks {
            assert!(
                before < *start && start <= end,
                "marks are sorted and apart"
            );
            before = *end;
        }
    }
}

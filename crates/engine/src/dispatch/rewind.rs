//! Rewinds: before anything of an at-least-once lane is sent again, the log hears that what was
//! acknowledged from there on does not count any more.

use model::{Epoch, KeyHash, MessageId, SessionId, Term, Timestamp};

use super::Credit;
use super::dispatcher::Dispatcher;
use super::lane::Lane;
use super::session::Flow;
use super::step::Step;
use crate::Fault;
use crate::shard::LaneRewind;
use crate::table::lane::Lane as LaneRow;

/// Whether the log has heard of a rewind, in this term and not behind `next`, so that nothing that
/// earlier leaders delivered from there on counts. Only while no other dispatcher of the term can
/// have sent anything since: `term` is none otherwise.
///
/// A rewind that another shard logged before the key came here is of an earlier epoch.
pub(super) fn is_covered(row: &LaneRow, next: MessageId, term: Option<Term>, epoch: Epoch) -> bool {
    let covers = |term| {
        let mut rewound = row.rewound.iter();
        rewound.any(|rewound| {
            let by = rewound.generation;
            by.term == term && by.epoch >= epoch && rewound.from <= next
        })
    };
    term.is_some_and(covers)
}

/// Whether the log carried a rewind out. It does nothing where the position had passed its start:
/// then marks further on are still there.
fn took_effect(row: &LaneRow, rewind: &LaneRewind) -> bool {
    let mut rewound = row.rewound.iter();
    rewound.any(|entry| entry.from <= rewind.from && entry.generation >= rewind.generation)
}

impl Dispatcher {
    /// Lets a lane go back to `from`, in the log first.
    pub(super) fn rewind(
        &mut self,
        now: Timestamp,
        strand: KeyHash,
        lane: &mut Lane,
        from: MessageId,
    ) {
        lane.next = from;
        lane.rewinding = Some(from);
        lane.went_back = Some(now);
        let generation = self.next_generation(lane.epoch);
        self.outbox.rewind(LaneRewind {
            strand,
            from,
            generation,
        });
    }

    /// The log has heard of rewinds. Acks that it heard of before them may have moved the lanes on.
    pub(super) fn rewound(
        &mut self,
        step: &mut Step<'_>,
        lanes: &[LaneRewind],
    ) -> Result<(), Fault> {
        for rewind in lanes {
            let row = self.backlog(step).lane(rewind.strand)?;
            if let Some(lane) = self.lanes.get_mut(&rewind.strand) {
                lane.rewinding = None;
                if took_effect(&row, rewind) {
                    lane.rewound = true;
                    lane.sent = lane.sent.min(MessageId(rewind.from.0 - 1));
                }
                self.pass_settled(step, rewind.strand)?;
                self.refresh(rewind.strand);
            }
        }
        self.serve_held(step)
    }

    /// Serves the sessions whose grants wait for rewinds.
    fn serve_held(&mut self, step: &mut Step<'_>) -> Result<(), Fault> {
        let held: Vec<(SessionId, Credit)> = self
            .sessions
            .iter()
            .filter_map(|(id, session)| match session.flow {
                Flow::Held { credit } => Some((id, credit)),
                _ => None,
            })
            .collect();
        for (session, credit) in held {
            self.serve(step, session, credit)?;
        }
        Ok(())
    }
}

//! Serving a lane: the next messages of one key, as far as order lets them go.

use model::{KeyHash, MessageId};

use super::SessionKind;
use super::dispatcher::Dispatcher;
use super::lane::Lane;
use super::serve::{Candidate, Serving};
use super::step::Step;
use super::walk::{Walk, messages_before};
use crate::Fault;
use crate::shard::read;
use crate::table::lane::Lane as LaneRow;
use crate::table::run::{Run, RunKey};

/// Messages of one lane before the next lane has its turn. A Pull takes what it can, since the
/// lane then waits until all of that is settled.
const TURN_MESSAGES_MAX: usize = 100;

/// One turn of a lane.
struct Turn {
    /// On exactly-once subscriptions: what is settled, since nothing of that comes again.
    row: Option<LaneRow>,
    /// How many more messages may be sent.
    quota: usize,
}

/// What is to be done with the next message of a lane.
enum Verdict {
    /// It is settled already.
    Pass,
    /// It is outstanding: the lane waits.
    Wait,
    /// The filter does not want it.
    Settle,
    /// It has failed often enough.
    Bury,
    /// The log must hear of a rewind first.
    Rewind,
    /// It goes out.
    Send,
}

impl Dispatcher {
    /// Serves the lane whose turn it is; whether there was one.
    pub(super) fn serve_lane(
        &mut self,
        step: &mut Step<'_>,
        serving: &mut Serving,
    ) -> Result<bool, Fault> {
        let own = self.ready.first(Some(serving.to.session));
        let Some(strand) = own.or_else(|| self.ready.first(None)) else {
            return Ok(false);
        };
        let lane = self.lanes.remove(&strand);
        let mut lane = lane.expect("a lane in a queue is in memory");
        self.ready.remove(strand, &mut lane);
        self.send_lane(step, serving, strand, &mut lane)?;
        self.lanes.insert(strand, lane);
        self.refresh(strand);
        Ok(true)
    }

    fn send_lane(
        &mut self,
        step: &mut Step<'_>,
        serving: &mut Serving,
        strand: KeyHash,
        lane: &mut Lane,
    ) -> Result<(), Fault> {
        let mut turn = Turn {
            row: match self.attachment.settings.exactly_once {
                true => Some(self.backlog(step).lane(strand)?),
                false => None,
            },
            quota: match serving.to.kind {
                SessionKind::Stream => TURN_MESSAGES_MAX,
                SessionKind::Pull => usize::MAX,
            },
        };
        let mut walk = Walk::new(step.view, self.topic, strand, lane.next);
        let mut hint = lane.run.take();
        // Behind the newest message there is only what the reader will bring: to look for it here
        // would cost each key with a single message as much as that message.
        while lane.next <= lane.newest && turn.quota > 0 && serving.goes_on() {
            let Some((first, run)) = walk.next(hint.take())? else {
                // Whatever else was known of the strand is settled, and not stored any more.
                lane.next = lane.next.max(MessageId(lane.newest.0 + 1));
                return Ok(());
            };
            serving.count_run();
            let last = run.last(first);
            lane.newest = lane.newest.max(last);
            let goes_on = self.send_run(step, serving, lane, &mut turn, (first, &run))?;
            if lane.next <= last {
                lane.run = Some(first);
            }
            if !goes_on {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Sends what it can of one run of a lane; whether the lane can go on behind it.
    fn send_run(
        &mut self,
        step: &mut Step<'_>,
        serving: &mut Serving,
        lane: &mut Lane,
        turn: &mut Turn,
        (first, run): (MessageId, &Run),
    ) -> Result<bool, Fault> {
        let attempts = self.attempts(step, first, run.last(first))?;
        let topic = self.topic;
        let Some(payload) = read::payload(step.view, RunKey { topic, first }, run)? else {
            lane.next = MessageId(run.last(first).0 + 1);
            return Ok(true);
        };
        let passed = messages_before(lane.next, first);
        for (number, message) in (0..run.count).zip(payload.messages()).skip(passed) {
            if turn.quota == 0 || !serving.batch.has_room() {
                return Ok(false);
            }
            let id = first.plus(number);
            let candidate = Candidate {
                id,
                message,
                attempts: attempts.get(&id).copied().unwrap_or(0),
            };
            if !self.take_next(step, serving, lane, turn, run, candidate) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Does what is to be done with the next message of a lane; whether the lane can go on behind
    /// it.
    fn take_next(
        &mut self,
        step: &mut Step<'_>,
        serving: &mut Serving,
        lane: &mut Lane,
        turn: &mut Turn,
        run: &Run,
        candidate: Candidate,
    ) -> bool {
        let (id, bytes) = (candidate.id, candidate.message.len() as u64);
        match self.judge(lane, turn, &candidate) {
            Verdict::Pass => lane.advance(id, bytes),
            Verdict::Settle => {
                if !model::sabotage!("filtered-message-stays") {
                    self.outbox.settle(run.strand, id, None);
                }
                lane.advance(id, bytes);
            }
            Verdict::Send => {
                self.send(step, serving, run, Some(lane), candidate);
                lane.send(id, bytes, &serving.to);
                turn.quota -= 1;
            }
            Verdict::Wait => {
                lane.next = id;
                return false;
            }
            Verdict::Rewind => {
                self.rewind(step.now, run.strand, lane, id);
                serving.batch.count_rewind();
                return false;
            }
            Verdict::Bury => {
                lane.next = id;
                lane.undecided += 1;
                self.bury(step, id, run, true, candidate.message, candidate.attempts);
                return false;
            }
        }
        true
    }

    fn judge(&self, lane: &Lane, turn: &Turn, candidate: &Candidate) -> Verdict {
        let id = candidate.id;
        if turn.row.as_ref().is_some_and(|row| row.covers(id)) {
            Verdict::Pass
        } else if lane.is_outstanding(id) {
            Verdict::Wait
        } else if !self.wants(&candidate.message) {
            Verdict::Settle
        } else if self.is_dead(id, candidate.attempts) {
            Verdict::Bury
        } else if turn.row.is_none() && lane.needs_rewind(id, self.inherited) {
            Verdict::Rewind
        } else {
            Verdict::Send
        }
    }
}

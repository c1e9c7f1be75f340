//! Serving a grant: choosing what to send, at the moment when it can be sent.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use model::{AckId, KeyHash, MessageId, SessionId};

use super::dispatcher::Dispatcher;
use super::flow::Batch;
use super::lane::{Holder, Lane};
use super::lease::Lease;
use super::session::Flow;
use super::step::Step;
use super::walk::{Walk, messages_before};
use super::{Credit, Delivered, Output, SessionKind};
use crate::Fault;
use crate::kv::ViewExt;
use crate::shard::read;
use crate::table::delivery::{Delivery, DeliveryKey};
use crate::table::lane::Lane as LaneRow;
use crate::table::run::{Run, RunKey};

/// Messages of one lane before the next lane has its turn. A Pull takes what it can, since the
/// lane then waits until all of that is settled.
const LANE_TURN_MAX: usize = 100;

/// What is served next: each source in turn, so that none waits for another to be empty.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Source {
    /// Lanes that can go on.
    #[default]
    Lanes,
    /// Messages without order that are sent again.
    Again,
    /// Messages without order that the reader has found.
    Fresh,
}

const SOURCES: usize = 3;

impl Source {
    fn next(self) -> Self {
        match self {
            Source::Lanes => Source::Again,
            Source::Again => Source::Fresh,
            Source::Fresh => Source::Lanes,
        }
    }
}

/// Whom a batch is for.
#[derive(Clone, Debug)]
pub(super) struct Recipient {
    holder: Holder,
    ack_deadline: Duration,
}

/// A message that may be sent.
struct Candidate {
    id: MessageId,
    message: Bytes,
    attempts: u32,
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
    /// A session answers its offer.
    pub(super) fn grant(
        &mut self,
        step: &mut Step<'_>,
        session: SessionId,
        credit: Credit,
    ) -> Result<(), Fault> {
        self.answered(session, credit);
        self.end_starvation(session);
        self.serve(step, session, credit)
    }

    /// Sends a session what it may have.
    pub(super) fn serve(
        &mut self,
        step: &mut Step<'_>,
        id: SessionId,
        granted: Credit,
    ) -> Result<(), Fault> {
        let Some(session) = self.sessions.get(id) else {
            return Ok(());
        };
        let to = Recipient {
            holder: Holder {
                session: id,
                kind: session.kind,
                client: session.client.clone(),
            },
            ack_deadline: session.ack_deadline,
        };
        let mut batch = Batch::new(granted);
        let mut empty = 0;
        while batch.has_room() && empty < SOURCES {
            let found = match self.turn {
                Source::Lanes => self.serve_lane(step, &to, &mut batch)?,
                Source::Again => self.serve_again(step, &to, &mut batch)?,
                Source::Fresh => self.serve_fresh(step, &to, &mut batch)?,
            };
            self.turn = self.turn.next();
            empty = if found { 0 } else { empty + 1 };
        }
        self.conclude(step, &to, batch);
        Ok(())
    }

    /// Sends what was gathered, or has it logged first.
    fn conclude(&mut self, step: &mut Step<'_>, to: &Recipient, batch: Batch) {
        let (session, granted) = (to.holder.session, batch.granted());
        let flow = if batch.waits_for_rewinds() {
            Flow::Held { credit: granted }
        } else {
            let deliveries = batch.into_deliveries();
            if self.attachment.settings.exactly_once && !deliveries.is_empty() {
                self.log_grant(session, &deliveries, to.ack_deadline);
                Flow::Logging {
                    credit: granted,
                    deliveries,
                }
            } else {
                step.out.push(Output::Deliver {
                    session,
                    deliveries,
                    granted,
                });
                Flow::Idle
            }
        };
        let session = self.sessions.get_mut(session);
        session.expect("the session is being served").flow = flow;
    }

    /// Serves the lane whose turn it is; whether there was one.
    fn serve_lane(
        &mut self,
        step: &mut Step<'_>,
        to: &Recipient,
        batch: &mut Batch,
    ) -> Result<bool, Fault> {
        let own = self.ready.first(Some(to.holder.session));
        let Some(strand) = own.or_else(|| self.ready.first(None)) else {
            return Ok(false);
        };
        let lane = self.lanes.remove(&strand);
        let mut lane = lane.expect("a lane in a queue is in memory");
        self.ready.remove(strand, &mut lane);
        self.send_lane(step, to, batch, strand, &mut lane)?;
        self.lanes.insert(strand, lane);
        self.refresh(strand);
        Ok(true)
    }

    fn send_lane(
        &mut self,
        step: &mut Step<'_>,
        to: &Recipient,
        batch: &mut Batch,
        strand: KeyHash,
        lane: &mut Lane,
    ) -> Result<(), Fault> {
        let row = match self.attachment.settings.exactly_once {
            true => Some(self.backlog(step).lane(strand)?),
            false => None,
        };
        let mut quota = match to.holder.kind {
            SessionKind::Stream => LANE_TURN_MAX,
            SessionKind::Pull => usize::MAX,
        };
        let mut walk = Walk::new(step.view, self.topic, strand, lane.next);
        let mut known = lane.run.take();
        while quota > 0 && batch.has_room() {
            let Some((first, run)) = walk.next(known.take())? else {
                // Whatever else was known of the strand is settled, and not stored any more.
                lane.next = lane.next.max(MessageId(lane.newest.0 + 1));
                return Ok(());
            };
            let last = run.last(first);
            lane.newest = lane.newest.max(last);
            let goes_on = self.send_run(step, to, batch, lane, (first, &run), &row, &mut quota)?;
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
    #[expect(clippy::too_many_arguments, reason = "the parts of one lane's turn")]
    fn send_run(
        &mut self,
        step: &mut Step<'_>,
        to: &Recipient,
        batch: &mut Batch,
        lane: &mut Lane,
        (first, run): (MessageId, &Run),
        row: &Option<LaneRow>,
        quota: &mut usize,
    ) -> Result<bool, Fault> {
        let attempts = self.attempts(step, first, run.last(first))?;
        let payload = step.view.payload(run.payload)?;
        let passed = messages_before(lane.next, first);
        for (number, message) in (0..run.count).zip(payload.messages()).skip(passed) {
            if *quota == 0 || !batch.has_room() {
                return Ok(false);
            }
            let id = first.plus(number);
            let bytes = message.len() as u64;
            let candidate = Candidate {
                id,
                message,
                attempts: attempts.get(&id).copied().unwrap_or(0),
            };
            match self.judge(lane, row, &candidate) {
                Verdict::Pass => lane.advance(id, bytes),
                Verdict::Settle => {
                    self.outbox.settle(run.strand, id, None);
                    lane.advance(id, bytes);
                }
                Verdict::Send => {
                    self.send(step, to, batch, run, true, candidate);
                    lane.begin_lease(id);
                    lane.holder = Some(to.holder.clone());
                    lane.sent = lane.sent.max(id);
                    lane.advance(id, bytes);
                    *quota -= 1;
                }
                Verdict::Wait => {
                    lane.next = id;
                    return Ok(false);
                }
                Verdict::Rewind => {
                    self.rewind(run.strand, lane, id);
                    batch.count_rewind();
                    return Ok(false);
                }
                Verdict::Bury => {
                    lane.next = id;
                    lane.undecided += 1;
                    self.bury(step, id, run, true, candidate.message, candidate.attempts);
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    fn judge(&self, lane: &Lane, row: &Option<LaneRow>, candidate: &Candidate) -> Verdict {
        let id = candidate.id;
        if row.as_ref().is_some_and(|row| row.covers(id)) {
            Verdict::Pass
        } else if lane.is_outstanding(id) {
            Verdict::Wait
        } else if !self.wants(&candidate.message) {
            Verdict::Settle
        } else if self.is_dead(id, candidate.attempts) {
            Verdict::Bury
        } else if !self.attachment.settings.exactly_once && lane.needs_rewind(id, self.inherited) {
            Verdict::Rewind
        } else {
            Verdict::Send
        }
    }

    /// Serves one message that is sent again; whether there was one.
    fn serve_again(
        &mut self,
        step: &mut Step<'_>,
        to: &Recipient,
        batch: &mut Batch,
    ) -> Result<bool, Fault> {
        let Some((id, _)) = self.loose.pop() else {
            return Ok(false);
        };
        // Without its run the message is settled.
        if let Some((key, run)) = read::run_of(step.view, self.topic, id)? {
            let attempts = self.attempts(step, id, id)?;
            let number = (id.counter() - key.first.counter()) as usize;
            let candidate = Candidate {
                id,
                message: step.view.payload(run.payload)?.message(number),
                attempts: attempts.get(&id).copied().unwrap_or(0),
            };
            self.send_loose(step, to, batch, &run, candidate);
        }
        Ok(true)
    }

    /// Serves the run whose turn it is; whether there was one.
    fn serve_fresh(
        &mut self,
        step: &mut Step<'_>,
        to: &Recipient,
        batch: &mut Batch,
    ) -> Result<bool, Fault> {
        let Some(mut ahead) = self.reader.pop() else {
            return self.fill(step);
        };
        let first = ahead.first;
        let topic = self.topic;
        // Without its row the run is settled.
        let Some(run) = step.view.row::<Run>(&RunKey { topic, first })? else {
            return Ok(true);
        };
        let attempts = self.attempts(step, first, run.last(first))?;
        let payload = step.view.payload(run.payload)?;
        for message in payload.messages().skip(ahead.at as usize) {
            if !batch.has_room() {
                break;
            }
            let id = first.plus(ahead.at);
            let settled = ahead.is_settled(ahead.at);
            ahead.at += 1;
            if settled || self.is_known(id) {
                continue;
            }
            let attempts = attempts.get(&id).copied().unwrap_or(0);
            let candidate = Candidate {
                id,
                message,
                attempts,
            };
            self.send_loose(step, to, batch, &run, candidate);
        }
        self.reader.put_back(ahead);
        Ok(true)
    }

    /// Whether the reader meets a message whose lease an earlier leader has logged.
    fn is_known(&self, id: MessageId) -> bool {
        id <= self.inherited && (self.leases.contains(id) || self.loose.contains(id))
    }

    fn send_loose(
        &mut self,
        step: &mut Step<'_>,
        to: &Recipient,
        batch: &mut Batch,
        run: &Run,
        candidate: Candidate,
    ) {
        let (id, bytes) = (candidate.id, candidate.message.len() as u64);
        if self.loose.is_being_acknowledged(id) {
            self.loose.wait_for_ack(id, bytes);
        } else if self.is_dead(id, candidate.attempts) {
            self.loose.wait_for_forward(id, bytes);
            self.bury(step, id, run, false, candidate.message, candidate.attempts);
        } else {
            self.send(step, to, batch, run, false, candidate);
        }
    }

    /// Puts a message into the batch, under a lease.
    fn send(
        &mut self,
        step: &Step<'_>,
        to: &Recipient,
        batch: &mut Batch,
        run: &Run,
        in_lane: bool,
        candidate: Candidate,
    ) {
        let (id, bytes) = (candidate.id, candidate.message.len() as u64);
        let generation = self.next_generation(run.keyed);
        let logged = self.attachment.settings.exactly_once;
        let lease = Lease {
            generation,
            strand: run.strand,
            in_lane,
            session: Some(to.holder.session),
            bytes,
            // A logged lease counts from its sending, once it is in the log.
            deadline: (!logged).then(|| step.now.plus(to.ack_deadline)),
            extended: false,
            logged,
            unconfirmed: false,
            acks: 0,
            changes: 0,
            failing: false,
            overdue: false,
        };
        self.leases.insert(id, lease);
        self.letters.excused.remove(&id);
        self.remembered.sent = self.remembered.sent.max(id);
        let delivery = Delivered {
            ack: AckId {
                subscription: self.subscription,
                key: run.strand,
                message: id,
                generation,
            },
            published: run.published,
            message: candidate.message,
            delivery_attempt: match &self.attachment.settings.dead_letter {
                Some(_) => candidate.attempts + 1,
                None => 0,
            },
        };
        batch.push(delivery, bytes);
    }

    /// Failed attempts of the messages `first` to `last`, where a dead-letter policy counts them.
    fn attempts(
        &self,
        step: &Step<'_>,
        first: MessageId,
        last: MessageId,
    ) -> Result<BTreeMap<MessageId, u32>, Fault> {
        if self.attachment.settings.dead_letter.is_none() {
            return Ok(BTreeMap::new());
        }
        let subscription = self.subscription;
        let key = |message| DeliveryKey {
            subscription,
            message,
        };
        let after = key(MessageId(last.0 + 1));
        let rows = step.view.rows::<Delivery>(&key(first), &after);
        rows.map(|row| row.map(|(key, delivery)| (key.message, delivery.attempts)))
            .collect()
    }
}

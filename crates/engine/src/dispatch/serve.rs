//! Serving a grant: choosing what to send, at the moment when it can be sent.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use model::{AckId, MessageId, SessionId};

use super::dispatcher::Dispatcher;
use super::flow::Batch;
use super::lane::{Holder, Lane};
use super::lease::Lease;
use super::session::Flow;
use super::step::Step;
use super::{Credit, Delivered, Output};
use crate::Fault;
use crate::kv::ViewExt;
use crate::table::delivery::{Delivery, DeliveryKey};
use crate::table::run::Run;

/// Runs that are read for one grant: a step must not hold up the others, however many messages it
/// finds that are not wanted.
const GRANT_RUNS_MAX: usize = 2_000;

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

/// A grant that is being served.
#[derive(Debug)]
pub(super) struct Serving {
    /// Whose grant it is.
    pub(super) to: Holder,
    /// The stream that it is, by its first opening.
    stream: Option<SessionId>,
    ack_deadline: Duration,
    pub(super) batch: Batch,
    /// How many more runs may be read.
    runs: usize,
}

impl Serving {
    pub(super) fn goes_on(&self) -> bool {
        self.batch.has_room() && self.runs > 0
    }

    pub(super) fn count_run(&mut self) {
        self.runs = self.runs.saturating_sub(1);
    }
}

/// A message that may be sent.
pub(super) struct Candidate {
    pub(super) id: MessageId,
    pub(super) message: Bytes,
    /// Failed attempts, where a dead-letter policy counts them.
    pub(super) attempts: u32,
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
        let mut serving = Serving {
            to: Holder {
                session: id,
                kind: session.kind,
                client: session.client.clone(),
            },
            stream: session.stream(),
            ack_deadline: session.ack_deadline,
            batch: Batch::new(granted),
            runs: GRANT_RUNS_MAX,
        };
        let mut empty = 0;
        while serving.goes_on() && empty < SOURCES {
            let found = match self.turn {
                Source::Lanes => self.serve_lane(step, &mut serving)?,
                Source::Again => self.serve_again(step, &mut serving)?,
                Source::Fresh => self.serve_fresh(step, &mut serving)?,
            };
            self.turn = self.turn.next();
            empty = if found { 0 } else { empty + 1 };
        }
        self.conclude(step, serving);
        Ok(())
    }

    /// Sends what was gathered, or has it logged first.
    fn conclude(&mut self, step: &mut Step<'_>, serving: Serving) {
        let session = serving.to.session;
        let granted = serving.batch.granted();
        let flow = if serving.batch.waits_for_rewinds() {
            Flow::Held { credit: granted }
        } else {
            let deliveries = serving.batch.into_deliveries();
            if self.attachment.settings.exactly_once && !deliveries.is_empty() {
                let stream = serving.stream;
                self.log_grant(session, stream, &deliveries, serving.ack_deadline);
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

    /// Puts a message into the batch, under a lease.
    pub(super) fn send(
        &mut self,
        step: &Step<'_>,
        serving: &mut Serving,
        run: &Run,
        lane: Option<&Lane>,
        candidate: Candidate,
    ) {
        let (id, bytes) = (candidate.id, candidate.message.len() as u64);
        let generation = self.next_generation(lane.map_or(run.epoch, |lane| lane.epoch));
        let logged = self.attachment.settings.exactly_once;
        let lease = Lease {
            generation,
            strand: run.strand,
            in_lane: lane.is_some(),
            session: Some(serving.to.session),
            stream: serving.stream,
            bytes,
            // A logged lease counts from its sending, once it is in the log.
            deadline: (!logged).then(|| step.now.plus(serving.ack_deadline)),
            extended: false,
            logged,
            brought: false,
            unconfirmed: false,
            if_back: None,
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
        serving.batch.push(delivery, bytes);
    }

    /// Failed attempts of the messages `first` to `last`, where a dead-letter policy counts them.
    pub(super) fn attempts(
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

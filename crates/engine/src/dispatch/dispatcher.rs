//! The dispatcher of one subscription: what it knows, from its first session to its last lease.
//!
//! Its parts are spread over the files beside this one, an `impl` in each. All of them end in
//! [`Dispatcher::finish`], which derives what is to be done from what is there: no part has to
//! remember to wake another.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use model::{Epoch, Generation, Incarnation, KeyHash, MessageId, SessionId, Term, Timestamp};

use super::Output;
use super::call::Calls;
use super::dead_letter::DeadLetters;
use super::lane::{Lane, Status};
use super::lease::Leases;
use super::loose::Loose;
use super::outbox::{Logging, Outbox};
use super::reader::Reader;
use super::ready::Ready;
use super::serve::Source;
use super::session::Sessions;
use super::step::Step;
use crate::Fault;
use crate::filter::Filter;
use crate::shard::{Backlog, Command, Reply};
use crate::table::attachment::{Attachment, AttachmentKey};

/// How long a dispatcher stays that has nothing to do: a client that polls by Pull has no session
/// most of the time, and a new dispatcher reads its backlog from the start.
const IDLE_MAX: Duration = Duration::from_secs(60);

/// A leadership, as its dispatchers need to know it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Leadership {
    pub(super) term: Term,
    /// When it began.
    pub(super) began: Timestamp,
    /// The newest message that earlier leaders may have delivered.
    pub(super) inherited: MessageId,
}

/// What the leader remembers of a dispatcher that is gone.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Remembered {
    /// How many deliveries it numbered: they are never numbered again within a term.
    pub(super) deliveries: u64,
    /// The newest message that it has sent.
    pub(super) sent: MessageId,
}

/// Picks messages of one subscription on one shard.
#[derive(Debug)]
pub(super) struct Dispatcher {
    pub(super) topic: Incarnation,
    pub(super) subscription: Incarnation,
    pub(super) attachment: Arc<Attachment>,
    pub(super) filter: Filter,
    pub(super) leadership: Leadership,
    /// The newest message that was perhaps delivered before this dispatcher existed.
    pub(super) inherited: MessageId,
    pub(super) remembered: Remembered,
    /// Whether the subscription had no other dispatcher in this term.
    is_first: bool,
    pub(super) sessions: Sessions,
    pub(super) reader: Reader,
    pub(super) lanes: BTreeMap<KeyHash, Lane>,
    pub(super) ready: Ready,
    /// Which lanes are held back until when.
    pub(super) resumptions: BTreeSet<(Timestamp, KeyHash)>,
    pub(super) loose: Loose,
    pub(super) leases: Leases,
    /// Failures of messages so far, where a retry policy asks and nothing else counts them.
    pub(super) failures: BTreeMap<MessageId, u32>,
    pub(super) letters: DeadLetters,
    /// Sessions that ended while deliveries for them were being logged, with the lanes of these.
    pub(super) orphans: BTreeMap<SessionId, BTreeSet<KeyHash>>,
    pub(super) outbox: Outbox,
    /// Commands on their way through the log.
    pub(super) in_flight: usize,
    pub(super) calls: Calls,
    /// What is served next.
    pub(super) turn: Source,
    idle_since: Option<Timestamp>,
}

impl Dispatcher {
    /// The dispatcher of a subscription; `None` if it does not take part in the topic.
    pub(super) fn open(
        step: &Step<'_>,
        (topic, subscription): (Incarnation, Incarnation),
        leadership: Leadership,
        remembered: Remembered,
    ) -> Result<Option<Self>, Fault> {
        let Some(backlog) = Backlog::open(step.view, topic, subscription)? else {
            return Ok(None);
        };
        let attachment = Arc::new(backlog.attachment().clone());
        let mut dispatcher = Dispatcher {
            topic,
            subscription,
            filter: Filter::stored(&attachment.settings.filter)?,
            leadership,
            inherited: leadership.inherited.max(remembered.sent),
            remembered,
            is_first: remembered.deliveries == 0,
            sessions: Sessions::default(),
            reader: Reader::new(MessageId(attachment.after.0 + 1)),
            lanes: BTreeMap::new(),
            ready: Ready::default(),
            resumptions: BTreeSet::new(),
            loose: Loose::default(),
            leases: Leases::default(),
            failures: BTreeMap::new(),
            letters: DeadLetters::default(),
            orphans: BTreeMap::new(),
            outbox: Outbox::default(),
            in_flight: 0,
            calls: Calls::default(),
            turn: Source::default(),
            idle_since: None,
            attachment,
        };
        if !model::sabotage!("new-leader-forgets-leases") {
            dispatcher.restore_leases(step, &backlog)?;
        }
        dispatcher.meet_arrived(step, &backlog)?;
        Ok(Some(dispatcher))
    }

    /// The subscription's rows as the step sees them. Even if a Detach is applied already: until
    /// its effect arrives, the rows that it left are as good as before.
    pub(super) fn backlog<'v>(&self, step: &Step<'v>) -> Backlog<'v> {
        let key = AttachmentKey {
            topic: self.topic,
            subscription: self.subscription,
        };
        Backlog::of(step.view, key, self.attachment.clone())
    }

    /// The term, unless another dispatcher of the subscription may have sent something in it.
    pub(super) fn first_of_term(&self) -> Option<Term> {
        self.is_first.then_some(self.leadership.term)
    }

    /// Names the next delivery.
    pub(super) fn next_generation(&mut self, epoch: Epoch) -> Generation {
        self.remembered.deliveries += u64::from(!model::sabotage!("deliveries-share-a-number"));
        Generation {
            epoch,
            term: self.leadership.term,
            counter: self.remembered.deliveries,
        }
    }

    /// Puts a lane where it belongs now. Everything that changes a lane ends here: it is the only
    /// place where a lane becomes deliverable.
    pub(super) fn refresh(&mut self, strand: KeyHash) {
        let Some(lane) = self.lanes.get_mut(&strand) else {
            return;
        };
        let queue = match lane.status() {
            Status::Done => {
                self.ready.remove(strand, lane);
                self.lanes.remove(&strand);
                return;
            }
            Status::Waiting => None,
            Status::Free => Some(self.sessions.preferred(strand)),
            // A key whose home is elsewhere goes there once nothing of it is outstanding here.
            Status::Held(holder) => match self.sessions.is_open(holder) {
                true if !self.sessions.wants_home(strand, holder) => Some(Some(holder)),
                _ => None,
            },
        };
        match queue {
            Some(queue) => self.ready.place(strand, lane, queue),
            None => self.ready.remove(strand, lane),
        }
    }

    /// Sessions have come or gone, or have credit again: lanes find their way anew.
    pub(super) fn refresh_all(&mut self) {
        let strands: Vec<KeyHash> = self.lanes.keys().copied().collect();
        for strand in strands {
            self.refresh(strand);
        }
    }

    /// Lets run out, resume and retry what is due.
    pub(super) fn wake(&mut self, step: &mut Step<'_>) -> Result<(), Fault> {
        while let Some(message) = self.leases.first_due(step.now) {
            self.expire(step, message);
        }
        while let Some((at, strand)) = self.resumptions.first().copied()
            && at <= step.now
        {
            self.resumptions.remove(&(at, strand));
            let lane = self.lanes.get_mut(&strand);
            lane.expect("a lane that is held back is in memory")
                .resume_at = None;
            self.refresh(strand);
        }
        self.loose.wake(step.now);
        self.retry_letters(step)?;
        self.starve(step.now);
        Ok(())
    }

    /// Reads ahead, offers, and gives credit back. Every step ends with this.
    pub(super) fn finish(&mut self, step: &mut Step<'_>) -> Result<(), Fault> {
        self.fill(step)?;
        self.offer(step);
        self.release(step);
        match self.is_idle() {
            true => drop(self.idle_since.get_or_insert(step.now)),
            false => self.idle_since = None,
        }
        self.reader.refill_budget();
        Ok(())
    }

    /// When the dispatcher has something to do though nothing happens.
    pub(super) fn next_wake(&self, now: Timestamp) -> Option<Timestamp> {
        let read_on = (self.wants_to_read() && self.reader.may_read()).then_some(now);
        let resumption = self.resumptions.first().map(|(at, _)| *at);
        let idle = self.idle_since.map(|since| since.plus(IDLE_MAX));
        [
            read_on,
            resumption,
            idle,
            self.leases.next_deadline(),
            self.loose.next_time(),
            self.letters.next_time(),
            self.next_starved(),
        ]
        .into_iter()
        .flatten()
        .min()
    }

    /// What is to be logged next: at most one command of each kind.
    pub(super) fn take_commands(&mut self) -> Vec<(Command, Logging)> {
        let commands = self.outbox.take(self.topic, self.subscription);
        self.in_flight += commands.len();
        commands
    }

    /// One of those commands is through the log.
    pub(super) fn logged(
        &mut self,
        step: &mut Step<'_>,
        logging: Logging,
        reply: Reply,
    ) -> Result<(), Fault> {
        self.in_flight -= 1;
        match (logging, reply) {
            (Logging::Acks(acks), Reply::Acknowledged(outcomes)) => {
                self.acknowledged(step, acks, &outcomes)
            }
            (Logging::Settlements(settlements), _) => self.settled(step, &settlements),
            (Logging::Rewinds(lanes), _) => self.rewound(step, &lanes),
            (Logging::Adoptions(adoptions), Reply::Leases(outcomes)) => {
                self.adopted(step, adoptions, &outcomes);
                Ok(())
            }
            (Logging::Extensions(extensions), Reply::Leases(outcomes)) => {
                self.extended(step, extensions, &outcomes)
            }
            (Logging::Failures(failures), Reply::Leases(outcomes)) => {
                self.failed(step, failures, &outcomes)
            }
            (Logging::Grant(session, deliveries), Reply::Leases(outcomes)) => {
                self.granted(step, session, deliveries, &outcomes)
            }
            // The subscription was detached in the entry before, whose effect ended this
            // dispatcher; nothing else refuses these commands.
            (logging, reply) => panic!("{reply:?} to {logging:?}"),
        }
    }

    /// Whether the dispatcher can go: what it knows can be read again.
    pub(super) fn is_over(&self, now: Timestamp) -> bool {
        let over = |since: Timestamp| since.plus(IDLE_MAX) <= now;
        self.is_idle() && self.idle_since.is_some_and(over)
    }

    fn is_idle(&self) -> bool {
        self.sessions.is_empty()
            && self.leases.is_empty()
            && self.in_flight == 0
            && self.outbox.is_empty()
            && self.calls.is_empty()
            && self.resumptions.is_empty()
            && self.loose.is_idle()
            && self.letters.is_empty()
    }

    /// Gives sessions the credit of ended leases back.
    fn release(&mut self, step: &mut Step<'_>) {
        for (session, credit) in self.leases.take_released() {
            if self.sessions.is_open(session) && !model::sabotage!("credit-lost") {
                step.out.push(Output::Release { session, credit });
            }
        }
    }
}

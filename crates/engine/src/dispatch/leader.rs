//! The leader of a shard: inputs find their dispatcher, and what dispatchers and publishers want
//! in the log finds its way there and back.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use model::limits::SHARD_WAITING_REQUESTS_MAX;
use model::{
    AckId, Epoch, Incarnation, KeyHash, MessageId, SessionId, ShardNumber, Term, Timestamp,
};

use super::arrivals::Arrivals;
use super::claim::Claims;
use super::dispatcher::{Dispatcher, Leadership, Remembered};
use super::ended::EndedSessions;
use super::proposal::{Entry, Proposals, Waiting};
use super::publish::Publishes;
use super::question::Questions;
use super::seals::Seals;
use super::session::SessionEnd;
use super::step::{Forwards, Step};
use super::sweep::Cleaner;
use super::transfers::Transfers;
use super::{
    AckReply, Ended, Input, ModifyReply, OpenSession, Output, ProposalId, PublishReply, Refused,
    RequestId,
};
use crate::Fault;
use crate::kv::View;
use crate::registry::Registries;
use crate::shard::{Command, Effect, Outcome, Rejected, Reply, read};
use crate::table::strand::StrandKey;

/// So many entries may be under way without being full. Beyond, what waits is gathered into fuller
/// ones: an entry costs much the same whatever is in it.
const EAGER_IN_FLIGHT_MAX: usize = 4;

/// What a shard's leader decides, for as long as it leads in one term.
///
/// It performs nothing: [`Leader::steps`] takes what has happened and answers what is to be done.
#[derive(Debug)]
pub struct Leader {
    pub(super) shard: ShardNumber,
    leadership: Leadership,
    pub(super) publishes: Publishes,
    pub(super) claims: Claims,
    pub(super) questions: Questions,
    pub(super) registries: Registries,
    pub(super) seals: Seals,
    pub(super) transfers: Transfers,
    pub(super) arrivals: Arrivals,
    catalogue: VecDeque<(RequestId, Command)>,
    proposals: Proposals,
    cleaner: Cleaner,
    forwards: Forwards,
    ended: EndedSessions,
    /// The topic of each subscription that takes part.
    topics: BTreeMap<Incarnation, Incarnation>,
    pub(super) dispatchers: BTreeMap<Incarnation, Dispatcher>,
    /// The dispatchers of each topic.
    readers: BTreeMap<Incarnation, BTreeSet<Incarnation>>,
    remembered: BTreeMap<Incarnation, Remembered>,
    sessions: BTreeMap<SessionId, Incarnation>,
    /// The dispatchers that this step has to do with.
    touched: BTreeSet<Incarnation>,
    /// The dispatchers that want something in the log.
    proposing: BTreeSet<Incarnation>,
    wakes: BTreeSet<(Timestamp, Incarnation)>,
    wake_of: BTreeMap<Incarnation, Timestamp>,
    /// The moment of the last [`Output::WakeAt`], until it has come.
    wake_at: Option<Timestamp>,
}

impl Leader {
    /// A leader that begins with the state in which its term's first entry is applied. Hand it a
    /// [`Input::Tick`] first: there may be something to be cleaned up.
    ///
    /// # Errors
    /// [`Fault`] when the state can't be read.
    pub fn new(
        shard: ShardNumber,
        registries: Registries,
        term: Term,
        now: Timestamp,
        view: &dyn View,
    ) -> Result<Self, Fault> {
        let counter = read::shard(view)?.counter;
        let mut topics = BTreeMap::new();
        for row in read::attachments(view) {
            let (key, _) = row?;
            topics.insert(key.subscription, key.topic);
        }
        let leadership = Leadership {
            term,
            began: now,
            inherited: MessageId::new(counter, shard),
        };
        Ok(Leader {
            shard,
            leadership,
            publishes: Publishes::default(),
            claims: Claims::new(shard, registries),
            questions: Questions::default(),
            registries,
            seals: Seals::new(view, registries, now)?,
            transfers: Transfers::new(shard, term),
            arrivals: Arrivals::new(view, registries, now)?,
            catalogue: VecDeque::new(),
            proposals: Proposals::default(),
            cleaner: Cleaner::new(view, now)?,
            forwards: Forwards::default(),
            ended: EndedSessions::default(),
            topics,
            dispatchers: BTreeMap::new(),
            readers: BTreeMap::new(),
            remembered: BTreeMap::new(),
            sessions: BTreeMap::new(),
            touched: BTreeSet::new(),
            proposing: BTreeSet::new(),
            wakes: BTreeSet::new(),
            wake_of: BTreeMap::new(),
            wake_at: None,
        })
    }

    /// Takes one input; see [`Leader::steps`].
    ///
    /// # Errors
    /// [`Fault`] when the state can't be read.
    pub fn step(
        &mut self,
        now: Timestamp,
        view: &dyn View,
        input: Input,
    ) -> Result<Vec<Output>, Fault> {
        self.steps(now, view, [input])
    }

    /// Takes what has happened, in order, and answers what is to be done, in order. Inputs that
    /// have gathered are best handed over together: they share log entries and reads.
    ///
    /// `now` is the leader's monotonic clock. `view` is at least as new as every outcome that the
    /// leader has been told, and may go on during the call.
    ///
    /// # Errors
    /// [`Fault`] when the state can't be read. The leader must not be used any more.
    pub fn steps(
        &mut self,
        now: Timestamp,
        view: &dyn View,
        inputs: impl IntoIterator<Item = Input>,
    ) -> Result<Vec<Output>, Fault> {
        let mut out = Vec::new();
        let mut forwards = std::mem::take(&mut self.forwards);
        let mut ended = std::mem::take(&mut self.ended);
        let mut step = Step {
            now,
            view,
            ended: &mut ended,
            forwards: &mut forwards,
            out: &mut out,
        };
        for input in inputs {
            self.take(&mut step, input)?;
        }
        self.finish(&mut step)?;
        self.forwards = forwards;
        self.ended = ended;
        Ok(out)
    }

    /// Whether so much waits for the log that the shell should not hand over more calls for now,
    /// and let their senders wait.
    #[must_use]
    pub fn is_full(&self) -> bool {
        let of_dispatcher = |subscription| {
            let dispatcher = self.dispatchers.get(subscription);
            dispatcher.map_or(0, |dispatcher| dispatcher.outbox.waiting_calls())
        };
        let calls: usize = self.proposing.iter().map(of_dispatcher).sum();
        self.publishes.len() + calls >= SHARD_WAITING_REQUESTS_MAX
    }

    fn take(&mut self, step: &mut Step<'_>, input: Input) -> Result<(), Fault> {
        match input {
            Input::Publish(request) => self.publish(step, request)?,
            Input::Catalogue { request, command } => self.catalogue.push_back((request, command)),
            Input::Acknowledge {
                request,
                ids,
                subscription,
            } => self.acknowledge(step, request, subscription, ids)?,
            Input::ModifyDeadline {
                request,
                subscription,
                ids,
            } => match self.dispatcher(step, subscription)? {
                Some(dispatcher) => dispatcher.modify_deadline(step, request, ids)?,
                None => step.out.push(Output::Modified {
                    request,
                    replies: vec![ModifyReply::Stale; ids.len()],
                }),
            },
            Input::OpenSession(open) => self.open_session(step, open)?,
            Input::Grant { session, credit } => {
                if let Some(dispatcher) = self.dispatcher_of(session) {
                    dispatcher.grant(step, session, credit)?;
                }
            }
            Input::SessionDeadline {
                session,
                ack_deadline,
            } => self.set_ack_deadline(session, ack_deadline),
            Input::CloseSession { session, returned } => {
                self.end_session(step, session, SessionEnd::Closed, returned)?;
            }
            Input::LoseSession {
                session,
                returned,
                back_within,
            } => {
                let lost = SessionEnd::Lost(back_within);
                self.end_session(step, session, lost, returned)?;
            }
            Input::SessionsEnded { node, before } => {
                if step.ended.learn(node, before, step.now) {
                    self.end_with_process(step);
                }
            }
            Input::Applied { proposal, outcomes } => self.applied(step, proposal, outcomes)?,
            Input::RegistryAnswered { question, reply } => {
                self.registry_answered(step, question, reply)?;
            }
            Input::MoveKey { request, key, to } => self.move_key(step, request, key, to)?,
            Input::Told(message) => self.told(step, message)?,
            Input::CatalogueCompared { copy } => self.arrivals.compared(&copy, step.now),
            Input::Forwarded { forward, result } => {
                if let Some(subscription) = step.forwards.subscription(forward)
                    && let Some(dispatcher) = self.dispatchers.get_mut(&subscription)
                {
                    self.touched.insert(subscription);
                    dispatcher.forwarded(step, forward, result)?;
                }
            }
            Input::Tick => {}
        }
        Ok(())
    }

    fn set_ack_deadline(&mut self, session: SessionId, ack_deadline: Duration) {
        if let Some(dispatcher) = self.dispatcher_of(session)
            && let Some(session) = dispatcher.sessions.get_mut(session)
        {
            session.ack_deadline = ack_deadline;
        }
    }

    fn acknowledge(
        &mut self,
        step: &mut Step<'_>,
        request: RequestId,
        subscription: Incarnation,
        ids: Vec<AckId>,
    ) -> Result<(), Fault> {
        match self.dispatcher(step, subscription)? {
            Some(dispatcher) => dispatcher.acknowledge(step, request, ids),
            None => step.out.push(Output::Acknowledged {
                request,
                replies: vec![AckReply::Stale; ids.len()],
            }),
        }
        Ok(())
    }

    fn open_session(&mut self, step: &mut Step<'_>, open: OpenSession) -> Result<(), Fault> {
        let (session, subscription) = (open.session, open.subscription);
        self.topics.entry(subscription).or_insert(open.topic);
        let Some(dispatcher) = self.dispatcher(step, subscription)? else {
            self.topics.remove(&subscription);
            let why = Ended::NotAttached;
            step.out.push(Output::Ended { session, why });
            return Ok(());
        };
        let predecessor = dispatcher.open_session(step, open);
        self.sessions.insert(session, subscription);
        if let Some(predecessor) = predecessor {
            self.sessions.remove(&predecessor);
        }
        Ok(())
    }

    fn end_session(
        &mut self,
        step: &mut Step<'_>,
        session: SessionId,
        end: SessionEnd,
        returned: Vec<AckId>,
    ) -> Result<(), Fault> {
        let open = self.sessions.remove(&session);
        let subscription = open.or_else(|| returned.first().map(|id| id.subscription));
        if let Some(subscription) = subscription
            && let Some(dispatcher) = self.dispatcher(step, subscription)?
        {
            dispatcher.end_session(step, session, end, returned);
        }
        Ok(())
    }

    /// Processes of frontends have ended, and with them sessions of any subscription.
    fn end_with_process(&mut self, step: &mut Step<'_>) {
        for (subscription, dispatcher) in &mut self.dispatchers {
            dispatcher.end_with_process(step);
            self.touched.insert(*subscription);
        }
        self.sessions
            .retain(|session, _| !step.ended.contains(*session));
    }

    /// The dispatcher of a subscription; none if it does not take part.
    fn dispatcher(
        &mut self,
        step: &Step<'_>,
        subscription: Incarnation,
    ) -> Result<Option<&mut Dispatcher>, Fault> {
        if !self.dispatchers.contains_key(&subscription) {
            let Some(topic) = self.topics.get(&subscription).copied() else {
                return Ok(None);
            };
            let remembered = self.remembered.get(&subscription);
            let remembered = remembered.copied().unwrap_or_default();
            let key = (topic, subscription);
            let opened = Dispatcher::open(step, key, self.leadership, remembered)?;
            let Some(dispatcher) = opened else {
                return Ok(None);
            };
            self.dispatchers.insert(subscription, dispatcher);
            self.readers.entry(topic).or_default().insert(subscription);
        }
        self.touched.insert(subscription);
        Ok(self.dispatchers.get_mut(&subscription))
    }

    fn dispatcher_of(&mut self, session: SessionId) -> Option<&mut Dispatcher> {
        let subscription = self.sessions.get(&session)?;
        self.touched.insert(*subscription);
        self.dispatchers.get_mut(subscription)
    }

    fn applied(
        &mut self,
        step: &mut Step<'_>,
        proposal: ProposalId,
        outcomes: Vec<Outcome>,
    ) -> Result<(), Fault> {
        let waiting = self.proposals.applied(proposal);
        assert_eq!(waiting.len(), outcomes.len(), "one outcome a command");
        for (waiting, outcome) in waiting.into_iter().zip(outcomes) {
            for effect in outcome.effects {
                self.effect(step, effect)?;
            }
            self.decided(step, waiting, outcome.reply)?;
        }
        Ok(())
    }

    fn effect(&mut self, step: &mut Step<'_>, effect: Effect) -> Result<(), Fault> {
        match effect {
            Effect::Published { key, .. } => {
                let readers = self.readers.get(&key.topic);
                for subscription in readers.into_iter().flatten() {
                    let dispatcher = self.dispatchers.get_mut(subscription);
                    let dispatcher = dispatcher.expect("only dispatchers are readers");
                    dispatcher.reader.at_end = model::sabotage!("publish-wakes-nobody");
                    self.touched.insert(*subscription);
                }
            }
            Effect::Reopened { key, epoch } => self.reopened(&key, epoch),
            Effect::Sealed { key } => {
                self.readers_do(&key, |dispatcher, strand| {
                    dispatcher.freeze(strand);
                    Ok(())
                })?;
            }
            Effect::Dropped { key } => {
                self.readers_do(&key, |dispatcher, strand| {
                    dispatcher.part(strand);
                    Ok(())
                })?;
            }
            Effect::Opened { key } => {
                if let Some(strand) = read::strand(step.view, key.topic, key.strand)? {
                    let inherited = &mut self.leadership.inherited;
                    *inherited = (*inherited).max(strand.last);
                }
                self.readers_do(&key, |dispatcher, strand| dispatcher.meet(step, strand))?;
            }
            Effect::Attached {
                topic,
                subscription,
            } => {
                self.topics.insert(subscription, topic);
                if let Some(dispatcher) = self.dispatchers.get_mut(&subscription) {
                    self.touched.insert(subscription);
                    dispatcher.reload(step)?;
                }
            }
            Effect::Detached {
                topic,
                subscription,
            } => self.detach(step, topic, subscription),
        }
        Ok(())
    }

    /// Every dispatcher of the topic does something about a strand.
    fn readers_do(
        &mut self,
        key: &StrandKey,
        mut what: impl FnMut(&mut Dispatcher, KeyHash) -> Result<(), Fault>,
    ) -> Result<(), Fault> {
        for subscription in self.readers.get(&key.topic).into_iter().flatten() {
            let dispatcher = self.dispatchers.get_mut(subscription);
            let dispatcher = dispatcher.expect("only dispatchers are readers");
            what(dispatcher, key.strand)?;
            self.touched.insert(*subscription);
        }
        Ok(())
    }

    /// Deliveries of a strand carry its newest epoch.
    fn reopened(&mut self, key: &StrandKey, epoch: Epoch) {
        for subscription in self.readers.get(&key.topic).into_iter().flatten() {
            let dispatcher = self.dispatchers.get_mut(subscription);
            let dispatcher = dispatcher.expect("only dispatchers are readers");
            if let Some(lane) = dispatcher.lanes.get_mut(&key.strand) {
                lane.epoch = epoch;
            }
        }
    }

    fn detach(&mut self, step: &mut Step<'_>, topic: Incarnation, subscription: Incarnation) {
        self.topics.remove(&subscription);
        self.cleaner.detach(topic, subscription);
        if let Some(mut dispatcher) = self.dispatchers.remove(&subscription) {
            dispatcher.calls.abandon(step.out);
            for (session, _) in dispatcher.sessions.iter() {
                self.sessions.remove(&session);
                let why = Ended::NotAttached;
                step.out.push(Output::Ended { session, why });
            }
            self.forget(topic, subscription);
        }
        step.forwards.drop_all_of(subscription);
        self.remembered.remove(&subscription);
    }

    fn decided(
        &mut self,
        step: &mut Step<'_>,
        waiting: Waiting,
        reply: Reply,
    ) -> Result<(), Fault> {
        match waiting {
            Waiting::Publish { request, opens } => {
                if let Some(key) = opens {
                    self.publishes.opened(&key);
                }
                let reply = publish_reply(&reply);
                step.out.push(Output::Published { request, reply });
            }
            Waiting::Catalogue(request) => step.out.push(Output::CatalogueLogged { request }),
            Waiting::Cleaner(cleaning) => self.cleaner.swept(cleaning, &reply),
            Waiting::Seal(sealing) => self.sealing_logged(step, sealing)?,
            Waiting::Arrival(arriving) => self.arrival_logged(step, arriving, &reply)?,
            // A dispatcher that is gone has answered its calls.
            Waiting::Dispatcher(subscription, logging) => {
                if let Some(dispatcher) = self.dispatchers.get_mut(&subscription) {
                    self.touched.insert(subscription);
                    dispatcher.logged(step, logging, reply)?;
                }
            }
        }
        Ok(())
    }

    /// Lets dispatchers conclude the step, proposes, and says when to come back.
    fn finish(&mut self, step: &mut Step<'_>) -> Result<(), Fault> {
        while let Some((at, subscription)) = self.wakes.first().copied()
            && at <= step.now
        {
            self.set_wake(subscription, None);
            self.touched.insert(subscription);
        }
        for subscription in std::mem::take(&mut self.touched) {
            let Some(dispatcher) = self.dispatchers.get_mut(&subscription) else {
                continue;
            };
            dispatcher.wake(step)?;
            dispatcher.finish(step)?;
            let (topic, remembered) = (dispatcher.topic, dispatcher.remembered);
            if dispatcher.is_over(step.now) {
                self.dispatchers.remove(&subscription);
                self.remembered.insert(subscription, remembered);
                self.forget(topic, subscription);
            } else {
                if !dispatcher.outbox.is_empty() {
                    self.proposing.insert(subscription);
                }
                let wake = dispatcher.next_wake(step.now);
                self.set_wake(subscription, wake);
            }
        }
        self.cleaner.look_if_due(step, &mut self.seals)?;
        self.ask_for_sealed(step)?;
        self.ask_for_arrivals(step);
        self.claims.ask(step.now, &mut self.questions, step.out);
        self.propose(step);
        self.wake_up(step);
        Ok(())
    }

    fn propose(&mut self, step: &mut Step<'_>) {
        while self.proposals.may_propose() {
            let full_only = self.proposals.in_flight() >= EAGER_IN_FLIGHT_MAX;
            if full_only && !self.publishes.fill_an_entry() {
                break;
            }
            let mut entry = Entry::new();
            self.gather(step, &mut entry);
            if entry.is_empty() {
                break;
            }
            self.proposals.propose(entry, step.out);
        }
    }

    /// Puts what waits into an entry. Publishes come last, so that they leave room to the rest.
    fn gather(&mut self, step: &mut Step<'_>, entry: &mut Entry) {
        for (request, command) in self.catalogue.drain(..) {
            entry.push(command, Waiting::Catalogue(request));
        }
        for subscription in std::mem::take(&mut self.proposing) {
            let Some(dispatcher) = self.dispatchers.get_mut(&subscription) else {
                continue;
            };
            for (command, logging) in dispatcher.take_commands() {
                entry.push(command, Waiting::Dispatcher(subscription, logging));
            }
            if !dispatcher.outbox.is_empty() {
                self.proposing.insert(subscription);
            }
        }
        self.cleaner.propose(entry);
        while !entry.is_full()
            && let Some(publish) = self.publishes.pop(step.now, entry.room(), step.out)
        {
            let waiting = Waiting::Publish {
                request: publish.request.request,
                opens: publish.opens(),
            };
            entry.push(publish.into_command(), waiting);
        }
        self.arrivals.propose(entry);
        self.seals.propose(|| self.publishes.keys(), entry);
    }

    fn wake_up(&mut self, step: &mut Step<'_>) {
        let dispatcher = self.wakes.first().map(|(at, _)| *at);
        let others = dispatcher.into_iter().chain(self.claims.next_wake());
        let others = others.chain(self.seals.next_wake());
        let others = others.chain(self.arrivals.next_wake());
        let next = others.fold(self.cleaner.next_wake(), Timestamp::min);
        let asked_for = self.wake_at.filter(|at| *at > step.now);
        if asked_for != Some(next) {
            self.wake_at = Some(next);
            step.out.push(Output::WakeAt(next));
        }
    }

    fn set_wake(&mut self, subscription: Incarnation, at: Option<Timestamp>) {
        let before = match at {
            Some(at) => self.wake_of.insert(subscription, at),
            None => self.wake_of.remove(&subscription),
        };
        if let Some(before) = before {
            self.wakes.remove(&(before, subscription));
        }
        self.wakes.extend(at.map(|at| (at, subscription)));
    }

    /// A dispatcher is gone.
    fn forget(&mut self, topic: Incarnation, subscription: Incarnation) {
        self.set_wake(subscription, None);
        self.proposing.remove(&subscription);
        if let Some(readers) = self.readers.get_mut(&topic) {
            readers.remove(&subscription);
            if readers.is_empty() {
                self.readers.remove(&topic);
            }
        }
    }
}

fn publish_reply(reply: &Reply) -> PublishReply {
    match reply {
        Reply::Published { first, .. } => PublishReply::Stored { first: *first },
        Reply::Rejected(Rejected::TopicClosed) => PublishReply::Refused(Refused::TopicClosed),
        // The leader proposes only what it knows to be open, and nobody else seals or drops it.
        _ => PublishReply::Refused(Refused::NotOwner),
    }
}

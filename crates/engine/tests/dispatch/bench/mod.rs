//! One shard in memory with its leader, and clients that say and hear what clients would.

mod registry;
mod streams;
mod words;

use streams::Stream;
pub(crate) use words::{data, key, message};

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use bytes::Bytes;
pub(crate) use engine::dispatch::Credit;
use engine::dispatch::{
    AckReply, Delivered, Ended, ForwardId, Forwarded, Input, Leader, ModifyReply, Output,
    ProposalId, PublishReply, PublishRequest, QuestionId, RequestId, SessionKind,
};
use engine::kv::Overlay;
use engine::kv::memory::MemoryView;
use engine::registry::{Command as RegistryCommand, Registries};
use engine::shard::{self, At, Attach, Backlog, Command, Detach, Outcome};
use engine::subscription::SubscriptionSettings;
use engine::table::lane::Lane;
use engine::table::run::PayloadAt;
use model::run::RunPayload;
use model::{AckId, Incarnation, MessageId, SessionId, ShardNumber, Term, Timestamp};

pub(crate) const SHARD: ShardNumber = ShardNumber(1);
pub(crate) const TOPIC: Incarnation = Incarnation(1);
pub(crate) const SUB: Incarnation = Incarnation(10);
/// Ample credit.
pub(crate) const PLENTY: Credit = Credit {
    messages: 1_000,
    bytes: 1_000_000,
};
pub(crate) const ACK_DEADLINE: Duration = Duration::from_secs(10);
/// How long a frontend that is well takes to come back when its way is lost, at most.
pub(crate) const BACK_WITHIN: Duration = Duration::from_secs(1);

/// What happened at the edge of the leader, in order.
#[derive(Clone, Debug)]
pub(crate) enum Heard {
    /// A session got a delivery; `batch` numbers the responses.
    Delivered {
        session: SessionId,
        batch: u64,
        delivery: Delivered,
        at: Timestamp,
        /// The lane's row at that moment.
        lane: Lane,
        /// Whether the message was settled or marked at that moment.
        settled: bool,
    },
    /// An ack was answered.
    Acknowledged(AckId, AckReply),
    /// A change of a deadline was answered.
    Modified(AckId, Duration, ModifyReply, Timestamp),
    /// A message left for the dead letters.
    Forwarded(Bytes),
}

/// A session as its frontend sees it.
#[derive(Default)]
struct Client {
    initial: Credit,
    /// What it still may have outstanding.
    credit: Credit,
    /// What it has granted and not heard of again.
    granted: Option<Credit>,
    offered: Option<Credit>,
    received: Vec<Delivered>,
    properties: Vec<(bool, bool)>,
    ended: Option<Ended>,
}

pub(crate) struct Bench {
    pub(crate) now: Timestamp,
    pub(crate) view: MemoryView,
    pub(crate) leader: Leader,
    term: u64,
    index: u64,
    requests: u64,
    sessions: u64,
    log: VecDeque<(ProposalId, Vec<Command>)>,
    untold: VecDeque<(ProposalId, Vec<Outcome>)>,
    /// The state of the one registry group, and what it is asked.
    registry: MemoryView,
    pub(crate) questions: VecDeque<(QuestionId, RegistryCommand)>,
    /// Questions are answered at once, unless a scenario holds them up.
    pub(crate) hold_registry: bool,
    /// Entries are applied at once, unless a scenario holds them up.
    pub(crate) hold_log: bool,
    /// Offers are answered at once, unless a scenario holds them up.
    pub(crate) hold_offers: bool,
    pub(crate) heard: Vec<Heard>,
    batches: u64,
    acks: BTreeMap<RequestId, Vec<AckId>>,
    changes: BTreeMap<RequestId, Vec<(AckId, Duration)>>,
    clients: BTreeMap<SessionId, Client>,
    streams: BTreeMap<SessionId, Stream>,
    published: BTreeMap<RequestId, PublishReply>,
    acknowledged: BTreeMap<RequestId, Vec<AckReply>>,
    modified: BTreeMap<RequestId, Vec<ModifyReply>>,
    pub(crate) catalogued: Vec<RequestId>,
    pub(crate) forwards: Vec<(ForwardId, Bytes, String)>,
    pub(crate) commands: Vec<Command>,
    wake_at: Option<Timestamp>,
    is_settling: bool,
}

pub(crate) fn settings(ordered: bool) -> SubscriptionSettings {
    SubscriptionSettings {
        ordered,
        exactly_once: false,
        ack_deadline: ACK_DEADLINE,
        filter: String::new(),
        dead_letter: None,
        retry: None,
    }
}

impl Bench {
    /// A shard with one subscription.
    pub(crate) fn new(settings: SubscriptionSettings) -> Self {
        let view = MemoryView::default();
        let leader = Leader::new(SHARD, Registries::ONE, Term(1), Timestamp::ZERO, &view).unwrap();
        let mut bench = Bench {
            now: Timestamp(1_000_000_000),
            view,
            leader,
            term: 1,
            index: 0,
            requests: 0,
            sessions: 0,
            log: VecDeque::new(),
            untold: VecDeque::new(),
            registry: MemoryView::default(),
            questions: VecDeque::new(),
            hold_registry: false,
            hold_log: false,
            hold_offers: false,
            heard: Vec::new(),
            batches: 0,
            acks: BTreeMap::new(),
            changes: BTreeMap::new(),
            clients: BTreeMap::new(),
            streams: BTreeMap::new(),
            published: BTreeMap::new(),
            acknowledged: BTreeMap::new(),
            modified: BTreeMap::new(),
            catalogued: Vec::new(),
            forwards: Vec::new(),
            commands: Vec::new(),
            wake_at: None,
            is_settling: false,
        };
        bench.attach(SUB, 1, settings);
        bench
    }

    pub(crate) fn attach(
        &mut self,
        subscription: Incarnation,
        version: u64,
        settings: SubscriptionSettings,
    ) {
        let request = self.request();
        let command = Command::Attach(Attach {
            topic: TOPIC,
            subscription,
            version,
            settings,
        });
        self.input(Input::Catalogue { request, command });
        assert!(self.catalogued.contains(&request) || self.hold_log);
    }

    pub(crate) fn detach(&mut self, subscription: Incarnation) {
        self.catalogue(Command::Detach(Detach {
            topic: TOPIC,
            subscription,
        }));
    }

    pub(crate) fn catalogue(&mut self, command: Command) {
        let request = self.request();
        self.input(Input::Catalogue { request, command });
    }

    /// Another replica becomes the leader; every session is gone, and so is what was not applied.
    pub(crate) fn change_leader(&mut self) {
        self.term += 1;
        self.log.clear();
        self.untold.clear();
        self.clients.clear();
        self.questions.clear();
        let term = Term(self.term);
        self.leader = Leader::new(SHARD, Registries::ONE, term, self.now, &self.view).unwrap();
        self.wake_at = None;
        self.input(Input::Tick);
    }

    /// The subscription's rows.
    pub(crate) fn backlog(&self) -> Backlog<'_> {
        let backlog = Backlog::open(&self.view, TOPIC, SUB).unwrap();
        backlog.expect("the subscription is attached")
    }

    fn request(&mut self) -> RequestId {
        self.requests += 1;
        RequestId(self.requests)
    }

    /// Publishes messages in one request. An empty key is none.
    pub(crate) fn publish(&mut self, ordering_key: &str, texts: &[&str]) -> Vec<MessageId> {
        let messages: Vec<Bytes> = texts.iter().map(|text| message(text)).collect();
        self.publish_encoded(ordering_key, &messages)
    }

    pub(crate) fn publish_encoded(
        &mut self,
        ordering_key: &str,
        messages: &[Bytes],
    ) -> Vec<MessageId> {
        let request = self.send_publish(ordering_key, messages, None);
        match self.published.get(&request) {
            Some(PublishReply::Stored { first }) => (0..messages.len())
                .map(|at| first.plus(at as u32))
                .collect(),
            None if self.hold_log => Vec::new(),
            other => panic!("{other:?}"),
        }
    }

    pub(crate) fn send_publish(
        &mut self,
        ordering_key: &str,
        messages: &[Bytes],
        deadline: Option<Timestamp>,
    ) -> RequestId {
        let request = self.request();
        self.input(Input::Publish(PublishRequest {
            request,
            topic: TOPIC,
            strand: key(ordering_key),
            keyed: !ordering_key.is_empty(),
            payload: RunPayload::new(messages),
            deadline,
        }));
        request
    }

    pub(crate) fn publish_reply(&self, request: RequestId) -> Option<PublishReply> {
        self.published.get(&request).copied()
    }

    /// One Pull: what it is answered with.
    pub(crate) fn pull(&mut self, messages: u32) -> Vec<Delivered> {
        let credit = Credit { messages, ..PLENTY };
        let session = self.open(SessionKind::Pull, credit, None);
        let received = self.take(session);
        self.close(session);
        received
    }

    /// Opens a Pull and leaves it waiting.
    pub(crate) fn waiting_pull(&mut self, messages: u32) -> SessionId {
        self.open(SessionKind::Pull, Credit { messages, ..PLENTY }, None)
    }

    pub(crate) fn close(&mut self, session: SessionId) {
        self.close_returning(session, &[]);
    }

    pub(crate) fn close_returning(&mut self, session: SessionId, returned: &[Delivered]) {
        let returned = returned.iter().map(|delivery| delivery.ack).collect();
        self.clients.remove(&session);
        self.input(Input::CloseSession { session, returned });
    }

    /// The way between a session's frontend and the leader is lost.
    pub(crate) fn lose(&mut self, session: SessionId) {
        self.clients.remove(&session);
        let returned = Vec::new();
        self.input(Input::LoseSession {
            session,
            returned,
            back_within: BACK_WITHIN,
        });
    }

    /// The same, and of what the stream got nothing arrived behind these.
    pub(crate) fn lose_behind(&mut self, stream: SessionId, arrived: &[Delivered]) {
        let known = self.streams.get_mut(&stream).expect("it was opened");
        known.received = arrived.last().map(|delivery| delivery.ack.generation);
        self.lose(stream);
    }

    pub(crate) fn credit(&self, session: SessionId) -> Credit {
        self.clients[&session].credit
    }

    /// Nothing is outstanding: the session has all of its credit.
    pub(crate) fn assert_all_credit_is_back(&self, session: SessionId) {
        let client = &self.clients[&session];
        assert_eq!(
            client.granted, None,
            "a grant of session {session} is unanswered"
        );
        let (has, had) = (client.credit.messages, client.initial.messages);
        assert_eq!(has, had, "P11: messages of session {session}");
    }

    pub(crate) fn has_offer(&self, session: SessionId) -> bool {
        self.clients[&session].offered.is_some()
    }

    pub(crate) fn properties(&self, session: SessionId) -> &[(bool, bool)] {
        &self.clients[&session].properties
    }

    pub(crate) fn ended(&self, session: SessionId) -> Option<Ended> {
        self.clients.get(&session).and_then(|client| client.ended)
    }

    /// What a session has received since the last call.
    pub(crate) fn take(&mut self, session: SessionId) -> Vec<Delivered> {
        let client = self.clients.get_mut(&session);
        client
            .map(|client| std::mem::take(&mut client.received))
            .unwrap_or_default()
    }

    /// The same as text.
    pub(crate) fn texts(&mut self, session: SessionId) -> Vec<String> {
        let received = self.take(session);
        received
            .iter()
            .map(|delivery| data(&delivery.message))
            .collect()
    }

    pub(crate) fn ack(&mut self, deliveries: &[Delivered]) -> Vec<AckReply> {
        let request = self.send_ack(deliveries);
        self.acknowledged[&request].clone()
    }

    pub(crate) fn send_ack(&mut self, deliveries: &[Delivered]) -> RequestId {
        let request = self.request();
        let ids: Vec<AckId> = deliveries.iter().map(|delivery| delivery.ack).collect();
        self.acks.insert(request, ids.clone());
        self.input(Input::Acknowledge {
            request,
            ids,
            subscription: SUB,
        });
        request
    }

    pub(crate) fn ack_replies(&self, request: RequestId) -> Option<&Vec<AckReply>> {
        self.acknowledged.get(&request)
    }

    pub(crate) fn modify(&mut self, deliveries: &[Delivered], seconds: u64) -> Vec<ModifyReply> {
        let request = self.request();
        let duration = Duration::from_secs(seconds);
        let ids: Vec<_> = deliveries
            .iter()
            .map(|delivery| (delivery.ack, duration))
            .collect();
        self.changes.insert(request, ids.clone());
        self.input(Input::ModifyDeadline {
            request,
            subscription: SUB,
            ids,
        });
        self.modified.get(&request).cloned().unwrap_or_default()
    }

    pub(crate) fn nack(&mut self, deliveries: &[Delivered]) -> Vec<ModifyReply> {
        self.modify(deliveries, 0)
    }

    pub(crate) fn forwarded(&mut self, forward: ForwardId, result: Forwarded) {
        self.input(Input::Forwarded { forward, result });
    }

    /// Lets time pass; the leader is woken whenever it asked for it.
    pub(crate) fn pass(&mut self, duration: Duration) {
        let end = self.now.plus(duration);
        let mut steps = 0;
        while let Some(at) = self.wake_at.filter(|at| *at <= end) {
            steps += 1;
            assert!(steps < 10_000, "the leader wakes for nothing");
            self.now = self.now.max(at);
            self.wake_at = None;
            self.input(Input::Tick);
        }
        self.now = end;
        self.input(Input::Tick);
    }

    pub(crate) fn pass_seconds(&mut self, seconds: u64) {
        self.pass(Duration::from_secs(seconds));
    }

    /// Hands an input over, and lets what follows from it happen as far as it is not held up.
    pub(crate) fn input(&mut self, input: Input) {
        self.step(input);
        if std::mem::replace(&mut self.is_settling, true) {
            return;
        }
        let mut steps = 0;
        while self.go_on() {
            steps += 1;
            assert!(steps < 10_000, "the leader never comes to rest");
        }
        self.is_settling = false;
    }

    fn step(&mut self, input: Input) {
        let outputs = self.leader.step(self.now, &self.view, input).unwrap();
        self.leader.assert_invariants(self.now);
        for output in outputs {
            self.output(output);
        }
    }

    fn go_on(&mut self) -> bool {
        if !self.hold_log && (self.apply_entry() || self.tell_outcomes()) {
            return true;
        }
        if !self.hold_registry && self.answer_question() {
            return true;
        }
        if !self.hold_offers && self.answer_offer() {
            return true;
        }
        let due = self.wake_at.take_if(|at| *at <= self.now).is_some();
        if due {
            self.step(Input::Tick);
        }
        due
    }

    /// Applies what was proposed, and tells the leader.
    pub(crate) fn apply_log(&mut self) {
        while self.apply_entry() || self.tell_outcomes() {}
    }

    /// Applies the oldest entry; the leader hears of it later.
    pub(crate) fn apply_entry(&mut self) -> bool {
        let Some((proposal, commands)) = self.log.pop_front() else {
            return false;
        };
        self.index += 1;
        let mut outcomes = Vec::new();
        let mut payload_number = 0;
        for command in &commands {
            let at = At {
                shard: SHARD,
                term: self.term,
                index: self.index,
                payload_number,
                time: self.now,
            };
            if let Command::Publish(publish) = command {
                let stored = PayloadAt {
                    term: at.term,
                    index: at.index,
                    number: payload_number,
                };
                self.view.store_payload(stored, publish.payload.clone());
                payload_number += 1;
            }
            let mut overlay = Overlay::new(&self.view);
            outcomes.push(shard::apply(&mut overlay, command, at).unwrap());
            let writes = overlay.into_writes();
            self.view.commit(writes);
        }
        self.commands.extend(commands);
        self.untold.push_back((proposal, outcomes));
        true
    }

    /// Tells the leader of the oldest entry that is applied.
    pub(crate) fn tell_outcomes(&mut self) -> bool {
        let Some((proposal, outcomes)) = self.untold.pop_front() else {
            return false;
        };
        self.input(Input::Applied { proposal, outcomes });
        true
    }

    fn output(&mut self, output: Output) {
        match output {
            Output::Propose { proposal, commands } => self.log.push_back((proposal, commands)),
            Output::AskRegistry {
                question, command, ..
            } => self.questions.push_back((question, command)),
            Output::Published { request, reply } => drop(self.published.insert(request, reply)),
            Output::Acknowledged { request, replies } => {
                let ids = self.acks[&request].iter().copied();
                let heard = ids.zip(replies.iter().copied());
                self.heard
                    .extend(heard.map(|(id, reply)| Heard::Acknowledged(id, reply)));
                assert!(self.acknowledged.insert(request, replies).is_none());
            }
            Output::Modified { request, replies } => {
                let ids = self.changes[&request].iter().copied();
                let heard = ids
                    .zip(replies.iter().copied())
                    .map(|((id, to), reply)| Heard::Modified(id, to, reply, self.now));
                self.heard.extend(heard);
                assert!(self.modified.insert(request, replies).is_none());
            }
            Output::CatalogueLogged { request } => self.catalogued.push(request),
            Output::Offer { session, waiting } => {
                let client = self.clients.get_mut(&session).expect("an open session");
                assert!(client.offered.is_none() && client.granted.is_none());
                assert!(waiting.messages > 0 && waiting.bytes > 0);
                client.offered = Some(waiting);
            }
            Output::Deliver {
                session,
                deliveries,
                granted,
            } => self.deliver(session, deliveries, granted),
            Output::Release { session, credit } => {
                let client = self.clients.get_mut(&session).expect("an open session");
                client.credit.messages += credit.messages;
                client.credit.bytes += credit.bytes;
            }
            Output::Opened {
                session,
                outstanding,
            } => self.opened(session, outstanding),
            Output::Properties {
                session,
                exactly_once,
                ordered,
            } => {
                let client = self.clients.get_mut(&session).expect("an open session");
                client.properties.push((exactly_once, ordered));
            }
            Output::Ended { session, why } => {
                let client = self.clients.get_mut(&session).expect("an open session");
                client.ended = Some(why);
            }
            Output::Forward {
                forward,
                message,
                ordering_key,
                ..
            } => {
                self.heard.push(Heard::Forwarded(message.clone()));
                self.forwards.push((forward, message, ordering_key));
            }
            Output::KeyMoved { .. } | Output::Tell { .. } | Output::CompareCatalogue { .. } => {
                panic!("there is no other shard")
            }
            Output::WakeAt(at) => self.wake_at = Some(at),
        }
    }

    fn opened(&mut self, session: SessionId, outstanding: Credit) {
        let client = self.clients.get_mut(&session).expect("an open session");
        let left = client.credit.messages.checked_sub(outstanding.messages);
        client.credit.messages = left.expect("P11: no more than the limit");
        client.credit.bytes = client.credit.bytes.saturating_sub(outstanding.bytes);
    }

    fn deliver(&mut self, session: SessionId, deliveries: Vec<Delivered>, granted: Credit) {
        self.batches += 1;
        let batch = self.batches;
        for delivery in &deliveries {
            let backlog = self.backlog();
            let heard = Heard::Delivered {
                session,
                batch,
                at: self.now,
                lane: backlog.lane(delivery.ack.key).unwrap(),
                settled: backlog.is_settled(delivery.ack.message).unwrap(),
                delivery: delivery.clone(),
            };
            self.heard.push(heard);
        }
        let Some(client) = self.clients.get_mut(&session) else {
            return;
        };
        assert_eq!(client.granted.take(), Some(granted));
        assert!(deliveries.len() <= granted.messages as usize);
        let sizes = deliveries
            .iter()
            .map(|delivery| delivery.message.len() as u64);
        let sent: u64 = sizes.clone().sum();
        let before_last = sent - sizes.last().unwrap_or(0);
        assert!(deliveries.is_empty() || before_last < granted.bytes);
        client.credit.messages += granted.messages - deliveries.len() as u32;
        client.credit.bytes = (client.credit.bytes + granted.bytes).saturating_sub(sent);
        let stream = self.streams.get_mut(&session).expect("it was opened");
        let newest = deliveries.last().map(|delivery| delivery.ack.generation);
        stream.received = newest.or(stream.received);
        client.received.extend(deliveries);
    }

    /// A session answers its offer, with at most so much.
    pub(crate) fn grant(&mut self, session: SessionId, limit: Credit) {
        let client = self.clients.get_mut(&session).expect("an open session");
        let Some(waiting) = client.offered else {
            return;
        };
        let credit = Credit {
            messages: waiting
                .messages
                .min(client.credit.messages)
                .min(limit.messages),
            bytes: waiting.bytes.min(client.credit.bytes).min(limit.bytes),
        };
        if credit.messages == 0 || credit.bytes == 0 || client.ended.is_some() {
            return;
        }
        client.offered = None;
        client.granted = Some(credit);
        client.credit.messages -= credit.messages;
        client.credit.bytes -= credit.bytes;
        self.input(Input::Grant { session, credit });
    }

    /// Sessions with credit answer their offers.
    pub(crate) fn answer_offers(&mut self) {
        while self.answer_offer() {}
    }

    fn answer_offer(&mut self) -> bool {
        let answering = self.clients.iter().find(|(_, client)| {
            let has_credit = client.credit.messages > 0 && client.credit.bytes > 0;
            has_credit && client.offered.is_some() && client.ended.is_none()
        });
        let Some((session, _)) = answering else {
            return false;
        };
        self.grant(*session, PLENTY);
        true
    }
}

//! Two shards with their leaders, the registry group between them, and one client at both.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use bytes::Bytes;
use engine::dispatch::{
    AckReply, Credit, Delivered, Input, Leader, ModifyReply, MoveReply, OpenSession, Output,
    ProposalId, PublishReply, PublishRequest, RequestId, SessionKind, TransferMessage,
};
use engine::kv::memory::MemoryView;
use engine::kv::{Overlay, ViewExt};
use engine::registry::{self, Pin, Registries};
use engine::shard::{self, At, Attach, Command, Detach, Outcome};
use engine::subscription::SubscriptionSettings;
use engine::table::run::PayloadAt;
use engine::table::strand::StrandKey;
use model::run::RunPayload;
use model::{
    AckId, Incarnation, KeyHash, MessageId, NodeId, SessionId, ShardNumber, Term, Timestamp,
};

pub(crate) const TOPIC: Incarnation = Incarnation(1);
pub(crate) const SUB: Incarnation = Incarnation(10);
/// Attached later than the other, if at all.
pub(crate) const LATE: Incarnation = Incarnation(11);
/// The two shards.
pub(crate) const WEST: usize = 0;
pub(crate) const EAST: usize = 1;

pub(crate) fn number(shard: usize) -> ShardNumber {
    ShardNumber(shard as u16 + 1)
}

pub(crate) fn key(name: &str) -> StrandKey {
    let mut strand = [0; 16];
    strand[..name.len()].copy_from_slice(name.as_bytes());
    StrandKey {
        topic: TOPIC,
        strand: KeyHash(strand),
    }
}

pub(crate) fn settings(ordered: bool, exactly_once: bool) -> SubscriptionSettings {
    SubscriptionSettings {
        ordered,
        exactly_once,
        ack_deadline: Duration::from_secs(10),
        filter: String::new(),
        dead_letter: None,
        retry: None,
    }
}

/// One shard.
pub(crate) struct Side {
    pub(crate) view: MemoryView,
    leader: Leader,
    term: u64,
    index: u64,
    log: VecDeque<(ProposalId, Vec<Command>)>,
    applied: VecDeque<(ProposalId, Vec<Outcome>)>,
    wake_at: Option<Timestamp>,
}

pub(crate) struct World {
    pub(crate) now: Timestamp,
    pub(crate) sides: [Side; 2],
    registry: MemoryView,
    told: VecDeque<(usize, TransferMessage)>,
    /// What the leaders are about to hear.
    inputs: VecDeque<(usize, Input)>,
    /// What the next messages between the shards are lost of, by their place.
    pub(crate) lose_told: bool,
    /// How many questions registry groups have answered.
    pub(crate) answered: usize,
    /// Registry groups do not answer.
    pub(crate) registry_is_silent: bool,
    requests: u64,
    sessions: u64,
    published: BTreeMap<RequestId, PublishReply>,
    acknowledged: BTreeMap<RequestId, Vec<AckReply>>,
    modified: BTreeMap<RequestId, Vec<ModifyReply>>,
    pub(crate) moved: BTreeMap<RequestId, MoveReply>,
    /// Which shard each session is open at.
    open: BTreeMap<SessionId, usize>,
    received: Vec<Delivered>,
    /// Every message of before, to find deliveries that should not be.
    pub(crate) compared: BTreeSet<usize>,
}

impl World {
    pub(crate) fn new(settings: SubscriptionSettings) -> Self {
        let side = |shard| {
            let view = MemoryView::default();
            let leader = leader(shard, 1, Timestamp::ZERO, &view);
            Side {
                view,
                leader,
                term: 1,
                index: 0,
                log: VecDeque::new(),
                applied: VecDeque::new(),
                wake_at: None,
            }
        };
        let mut world = World {
            now: Timestamp(1_000_000_000),
            sides: [side(WEST), side(EAST)],
            registry: MemoryView::default(),
            told: VecDeque::new(),
            inputs: VecDeque::new(),
            lose_told: false,
            answered: 0,
            registry_is_silent: false,
            requests: 0,
            sessions: 0,
            published: BTreeMap::new(),
            acknowledged: BTreeMap::new(),
            modified: BTreeMap::new(),
            moved: BTreeMap::new(),
            open: BTreeMap::new(),
            received: Vec::new(),
            compared: BTreeSet::new(),
        };
        for shard in [WEST, EAST] {
            world.attach(shard, SUB, settings.clone());
        }
        world
    }

    pub(crate) fn attach(
        &mut self,
        shard: usize,
        subscription: Incarnation,
        settings: SubscriptionSettings,
    ) {
        let command = Command::Attach(Attach {
            topic: TOPIC,
            subscription,
            version: 1,
            settings,
        });
        let request = self.request();
        self.input(shard, Input::Catalogue { request, command });
    }

    pub(crate) fn detach(&mut self, shard: usize, subscription: Incarnation) {
        let command = Command::Detach(Detach {
            topic: TOPIC,
            subscription,
        });
        let request = self.request();
        self.input(shard, Input::Catalogue { request, command });
    }

    fn request(&mut self) -> RequestId {
        self.requests += 1;
        RequestId(self.requests)
    }

    /// Another replica leads: what was in memory is gone, and sessions end.
    pub(crate) fn change_leader(&mut self, shard: usize) {
        let now = self.now;
        let side = &mut self.sides[shard];
        side.term += 1;
        side.log.clear();
        side.applied.clear();
        side.wake_at = None;
        side.leader = leader(shard, side.term, now, &side.view);
        self.inputs.retain(|(at, _)| *at != shard);
        self.open.retain(|_, at| *at != shard);
        self.input(shard, Input::Tick);
    }

    pub(crate) fn send_publish(&mut self, shard: usize, name: &str, texts: &[&str]) -> RequestId {
        let request = self.request();
        let messages: Vec<Bytes> = texts.iter().map(|text| message(text)).collect();
        let key = key(name);
        self.input(
            shard,
            Input::Publish(PublishRequest {
                request,
                topic: key.topic,
                strand: key.strand,
                keyed: true,
                payload: RunPayload::new(&messages),
                deadline: None,
            }),
        );
        request
    }

    pub(crate) fn publish_reply(&self, request: RequestId) -> Option<PublishReply> {
        self.published.get(&request).copied()
    }

    /// Publishes as a router does: where it is told to.
    pub(crate) fn publish(&mut self, name: &str, texts: &[&str]) -> MessageId {
        let mut shard = WEST;
        for _ in 0..4 {
            let request = self.send_publish(shard, name, texts);
            match self.publish_reply(request) {
                Some(PublishReply::Stored { first }) => return first,
                Some(PublishReply::Moved { shard: owner, .. }) => shard = side_of(owner),
                other => panic!("{other:?}"),
            }
        }
        panic!("{name} has no owner");
    }

    pub(crate) fn move_key(&mut self, from: usize, name: &str, to: usize) -> RequestId {
        let request = self.request();
        let (key, to) = (key(name), number(to));
        self.input(from, Input::MoveKey { request, key, to });
        request
    }

    /// Opens a stream at one shard that takes whatever it is offered.
    pub(crate) fn stream(&mut self, shard: usize) -> SessionId {
        self.stream_of(shard, SUB)
    }

    pub(crate) fn stream_of(&mut self, shard: usize, subscription: Incarnation) -> SessionId {
        let session = self.session_id();
        self.open(shard, subscription, session, session);
        session
    }

    /// A stream of before is open there too.
    pub(crate) fn stream_again(&mut self, shard: usize, stream: SessionId) {
        let session = self.session_id();
        self.open(shard, SUB, session, stream);
    }

    fn session_id(&mut self) -> SessionId {
        self.sessions += 1;
        SessionId {
            node: NodeId(1),
            number: self.sessions,
        }
    }

    fn open(
        &mut self,
        shard: usize,
        subscription: Incarnation,
        session: SessionId,
        first: SessionId,
    ) {
        self.open.insert(session, shard);
        self.input(
            shard,
            Input::OpenSession(OpenSession {
                session,
                topic: TOPIC,
                subscription,
                kind: SessionKind::Stream,
                ack_deadline: Duration::from_secs(10),
                client: None,
                first,
                received: None,
            }),
        );
    }

    /// What all streams have received since the last call.
    pub(crate) fn take(&mut self) -> Vec<Delivered> {
        std::mem::take(&mut self.received)
    }

    pub(crate) fn texts(&mut self) -> Vec<String> {
        self.take().iter().map(text).collect()
    }

    /// Acknowledges as a router does: at the shard of the id, then where the key is pinned.
    pub(crate) fn ack(&mut self, delivered: &Delivered) -> AckReply {
        let id = delivered.ack;
        let reply = self.ack_at(side_of(id.message.shard()), id);
        if reply != AckReply::Elsewhere {
            return reply;
        }
        match self.pin_of(id.key) {
            Some(pin) => self.ack_at(side_of(pin.shard), id),
            None => AckReply::Acknowledged,
        }
    }

    pub(crate) fn ack_at(&mut self, shard: usize, id: AckId) -> AckReply {
        let request = self.request();
        let (ids, subscription) = (vec![id], id.subscription);
        self.input(
            shard,
            Input::Acknowledge {
                request,
                ids,
                subscription,
            },
        );
        self.acknowledged[&request][0]
    }

    pub(crate) fn modify_at(&mut self, shard: usize, id: AckId, seconds: u64) -> ModifyReply {
        let request = self.request();
        let ids = vec![(id, Duration::from_secs(seconds))];
        self.input(
            shard,
            Input::ModifyDeadline {
                request,
                subscription: id.subscription,
                ids,
            },
        );
        self.modified[&request][0]
    }

    fn pin_of(&self, strand: KeyHash) -> Option<Pin> {
        let topic = TOPIC;
        self.registry.row(&StrandKey { topic, strand }).unwrap()
    }

    pub(crate) fn pin(&self, name: &str) -> Option<Pin> {
        self.pin_of(key(name).strand)
    }

    /// Lets time pass.
    pub(crate) fn pass(&mut self, duration: Duration) {
        let end = self.now.plus(duration);
        for _ in 0..100_000 {
            let due = [WEST, EAST].into_iter();
            let due = due.filter_map(|shard| Some((self.sides[shard].wake_at?, shard)));
            match due.min().filter(|(at, _)| *at <= end) {
                Some((at, shard)) => {
                    self.now = self.now.max(at);
                    self.sides[shard].wake_at = None;
                    self.input(shard, Input::Tick);
                }
                None => {
                    self.now = end;
                    return;
                }
            }
        }
        panic!("a leader wakes for nothing");
    }

    /// Hands an input over, and lets follow what follows.
    pub(crate) fn input(&mut self, shard: usize, input: Input) {
        self.step(shard, input);
        for _ in 0..100_000 {
            if !self.go_on() {
                return;
            }
        }
        panic!("the shards never come to rest");
    }

    fn step(&mut self, shard: usize, input: Input) {
        let side = &mut self.sides[shard];
        let outputs = side.leader.step(self.now, &side.view, input).unwrap();
        side.leader.assert_invariants(self.now);
        for output in outputs {
            self.output(shard, output);
        }
    }

    fn go_on(&mut self) -> bool {
        if let Some((shard, input)) = self.inputs.pop_front() {
            self.step(shard, input);
            return true;
        }
        for shard in [WEST, EAST] {
            if let Some((proposal, commands)) = self.sides[shard].log.pop_front() {
                let outcomes = self.apply(shard, &commands);
                self.sides[shard].applied.push_back((proposal, outcomes));
                return true;
            }
            if let Some((proposal, outcomes)) = self.sides[shard].applied.pop_front() {
                self.step(shard, Input::Applied { proposal, outcomes });
                return true;
            }
        }
        if let Some((to, message)) = self.told.pop_front() {
            let bytes = message.encode();
            let message = TransferMessage::decode(&bytes).unwrap();
            self.step(to, Input::Told(message));
            return true;
        }
        false
    }

    fn apply(&mut self, shard: usize, commands: &[Command]) -> Vec<Outcome> {
        let time = self.now;
        let side = &mut self.sides[shard];
        side.index += 1;
        let mut payload_number = 0;
        let mut outcomes = Vec::new();
        for command in commands {
            let at = At {
                shard: number(shard),
                term: side.term,
                index: side.index,
                payload_number,
                time,
            };
            for payload in command.payloads() {
                let stored = PayloadAt {
                    term: at.term,
                    index: at.index,
                    number: payload_number,
                };
                side.view.store_payload(stored, payload.clone());
                payload_number += 1;
            }
            let mut overlay = Overlay::new(&side.view);
            outcomes.push(shard::apply(&mut overlay, command, at).unwrap());
            let writes = overlay.into_writes();
            side.view.commit(writes);
        }
        outcomes
    }

    fn output(&mut self, shard: usize, output: Output) {
        match output {
            Output::Propose { proposal, commands } => {
                self.sides[shard].log.push_back((proposal, commands));
            }
            Output::AskRegistry {
                question, command, ..
            } => {
                let reply = (!self.registry_is_silent).then(|| self.ask(&command));
                let answered = Input::RegistryAnswered { question, reply };
                self.inputs.push_back((shard, answered));
            }
            Output::Tell { .. } if self.lose_told => {}
            Output::Tell { to, message } => self.told.push_back((side_of(to), message)),
            Output::CompareCatalogue { copy } => {
                self.compared.insert(shard);
                let compared = Input::CatalogueCompared { copy };
                self.inputs.push_back((shard, compared));
            }
            Output::KeyMoved { request, reply } => drop(self.moved.insert(request, reply)),
            Output::Published { request, reply } => drop(self.published.insert(request, reply)),
            Output::Acknowledged { request, replies } => {
                self.acknowledged.insert(request, replies);
            }
            Output::Modified { request, replies } => drop(self.modified.insert(request, replies)),
            Output::Offer { session, waiting } if self.open.contains_key(&session) => {
                let credit = Credit {
                    messages: waiting.messages.min(1_000),
                    bytes: waiting.bytes.max(1_000_000),
                };
                let granted = Input::Grant { session, credit };
                self.inputs.push_back((shard, granted));
            }
            Output::Deliver {
                session,
                deliveries,
                ..
            } if self.open.contains_key(&session) => self.received.extend(deliveries),
            Output::WakeAt(at) => self.sides[shard].wake_at = Some(at),
            _ => {}
        }
    }

    /// Applies a command to the registry group.
    pub(crate) fn ask(&mut self, command: &registry::Command) -> registry::Reply {
        self.answered += 1;
        let mut overlay = Overlay::new(&self.registry);
        let reply = registry::apply(&mut overlay, command).unwrap();
        let writes = overlay.into_writes();
        self.registry.commit(writes);
        reply
    }
}

fn leader(shard: usize, term: u64, now: Timestamp, view: &MemoryView) -> Leader {
    Leader::new(number(shard), Registries::ONE, Term(term), now, view).unwrap()
}

fn side_of(shard: ShardNumber) -> usize {
    usize::from(shard.0) - 1
}

/// A message with data, as its publisher encodes it.
fn message(text: &str) -> Bytes {
    let mut encoded = vec![0x0a, text.len() as u8];
    encoded.extend_from_slice(text.as_bytes());
    encoded.into()
}

pub(crate) fn text(delivered: &Delivered) -> String {
    String::from_utf8_lossy(&delivered.message[2..]).into_owned()
}

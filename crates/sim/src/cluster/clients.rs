//! Publishers and consumers: what they send, and the sessions and subscriptions that come and go.

use std::time::Duration;

use bytes::{BufMut, Bytes, BytesMut};
use engine::Fault;
use engine::dispatch::{Input, OpenSession, PublishRequest, SessionKind};
use engine::shard::{Attach, Backlog, Command, Detach};
use engine::subscription::SubscriptionSettings;
use model::run::RunPayload;
use model::{ClientId, MessageId, SessionId, TopicName};

use super::calls::Waiting;
use super::consumer::Act;
use super::frontend;
use super::{Cluster, Happening, Life, SECRET, Stage, TOPIC, incarnation};
use crate::history::{DeliveryNumber, Key, Subscription, Value, What};
use crate::plan;

/// Subscriptions that exist at once, at most.
const SUBSCRIPTIONS_MAX: usize = 5;

impl Cluster {
    pub(super) fn publish(&mut self) {
        if self.is_draining {
            return;
        }
        let every = self.plan.publish_every;
        let wait = self.chance.between(Duration::ZERO, 2 * every);
        self.plan_in(wait, Happening::Publish);
        let call = self.new_call();
        let number = self.chance.below(self.plan.keys + 1);
        let name = if number == 0 {
            String::new()
        } else {
            format!("k{number}")
        };
        let count = 1 + self.chance.below(self.plan.batch_max) as u32;
        let first = self.values + 1;
        self.values += u64::from(count);
        let values: Vec<_> = (first..=self.values).map(Value).collect();
        let messages: Vec<_> = values.iter().map(|value| encode(*value, &name)).collect();
        self.note(What::PublishInvoked {
            call,
            key: Key::from(&name[..]),
            values,
        });
        let request = self.calls.wait(Waiting::Publish(call, count));
        let patience = self.chance.up_to(Duration::from_secs(10));
        let deadline = self.leader_now().plus(patience);
        let deadline = self.chance.percent(50).then_some(deadline);
        self.send(Input::Publish(PublishRequest {
            request,
            topic: TOPIC,
            strand: SECRET.key_hash(TOPIC, &name),
            keyed: !name.is_empty(),
            payload: RunPayload::new(&messages),
            deadline,
        }));
    }

    pub(super) fn act(&mut self, delivery: DeliveryNumber, act: Act) {
        let (subscription, id) = self.deliveries[&delivery];
        let (waiting, ack_deadline, what) = match act {
            Act::Ack => return self.gather_ack(subscription, delivery),
            Act::Nack => {
                let call = self.new_call();
                let what = What::NackInvoked { call, delivery };
                (Waiting::Nack(call), Duration::ZERO, what)
            }
            Act::Extend(ack_deadline) => {
                let call = self.new_call();
                let what = What::ExtendInvoked {
                    call,
                    delivery,
                    ack_deadline,
                };
                (Waiting::Extend(call), ack_deadline, what)
            }
        };
        self.note(what);
        let request = self.calls.wait(waiting);
        self.send(Input::ModifyDeadline {
            request,
            subscription: incarnation(subscription),
            ids: vec![(id, ack_deadline)],
        });
    }

    fn gather_ack(&mut self, subscription: Subscription, delivery: DeliveryNumber) {
        let acking = self.acking.entry(subscription).or_default();
        acking.push(delivery);
        if acking.len() == 1 {
            let wait = self.chance.up_to(Duration::from_millis(100));
            self.plan_in(wait, Happening::SendAcks(subscription));
        }
    }

    pub(super) fn send_acks(&mut self, subscription: Subscription) {
        let mut deliveries = self.acking.remove(&subscription).unwrap_or_default();
        self.chance.shuffle(&mut deliveries);
        let mut calls = Vec::new();
        for delivery in deliveries {
            let call = self.new_call();
            self.note(What::AckInvoked { call, delivery });
            calls.push((call, delivery));
        }
        let ids = calls
            .iter()
            .map(|(_, delivery)| self.deliveries[delivery].1);
        let ids = ids.collect();
        let request = self.calls.wait(Waiting::Acks(calls));
        self.send(Input::Acknowledge {
            request,
            ids,
            subscription: incarnation(subscription),
        });
    }

    /// A session comes or goes, or a whole subscription.
    pub(super) fn churn(&mut self) {
        if self.is_draining {
            return;
        }
        let wait = self
            .chance
            .between(Duration::ZERO, 2 * self.plan.churn_every);
        self.plan_in(wait, Happening::Churn);
        let alive = self.alive();
        if alive.is_empty() || (alive.len() < SUBSCRIPTIONS_MAX && self.chance.percent(5)) {
            let settings = plan::settings(&mut self.chance);
            return self.create(settings);
        }
        let subscription = alive[self.chance.below(alive.len() as u64) as usize];
        match self.chance.below(20) {
            0 => self.delete(subscription),
            1..=8 => self.close_some_session(),
            9..=13 => {
                let messages = 1 + self.chance.below(self.plan.outstanding_max) as u32;
                self.open(subscription, SessionKind::Pull, messages);
            }
            _ => {
                let messages = 1 + self.chance.below(self.plan.outstanding_max) as u32;
                self.open_stream(subscription, messages);
            }
        }
    }

    pub(super) fn create(&mut self, mut settings: SubscriptionSettings) {
        let subscription = Subscription(100 + self.subscriptions.len() as u64);
        if let Some(policy) = &mut settings.dead_letter {
            policy.topic = dead_letters_of(subscription);
        }
        let stage = Stage::Creating;
        self.subscriptions
            .insert(subscription, Life { settings, stage });
        self.log_catalogue(subscription);
    }

    fn delete(&mut self, subscription: Subscription) {
        let life = self.subscriptions.get_mut(&subscription);
        life.expect("it is alive").stage = Stage::Deleting;
        self.note(What::Deleted { subscription });
        self.log_catalogue(subscription);
    }

    /// Whatever of creations and deletions is not in the log goes to the new leader.
    pub(super) fn resume_catalogue(&mut self) {
        let subscriptions: Vec<_> = self.subscriptions.keys().copied().collect();
        for subscription in subscriptions {
            self.log_catalogue(subscription);
        }
    }

    fn log_catalogue(&mut self, subscription: Subscription) {
        let life = &self.subscriptions[&subscription];
        let (topic, name) = (TOPIC, incarnation(subscription));
        let command = match life.stage {
            Stage::Creating => Command::Attach(Attach {
                topic,
                subscription: name,
                version: 1,
                settings: life.settings.clone(),
            }),
            Stage::Deleting => Command::Detach(Detach {
                topic,
                subscription: name,
            }),
            Stage::Alive | Stage::Gone => return,
        };
        let request = self.calls.wait(Waiting::Catalogue(subscription));
        self.arrive(Input::Catalogue { request, command });
    }

    /// A creation or deletion is in the log.
    pub(super) fn catalogue_logged(&mut self, subscription: Subscription) {
        let life = self.subscriptions.get_mut(&subscription);
        let life = life.expect("nobody removes a life");
        let settings = &life.settings;
        let (ordered, exactly_once) = (settings.ordered, settings.exactly_once);
        let may_wait = settings.retry.is_some() || settings.dead_letter.is_some();
        match life.stage {
            Stage::Creating => {
                life.stage = Stage::Alive;
                self.note(What::Created {
                    subscription,
                    ordered,
                    exactly_once,
                    may_wait,
                });
                self.open_stream(subscription, 10);
            }
            Stage::Deleting => life.stage = Stage::Gone,
            Stage::Alive | Stage::Gone => {}
        }
    }

    pub(super) fn open_stream(&mut self, subscription: Subscription, messages: u32) {
        self.open(subscription, SessionKind::Stream, messages);
    }

    fn open(&mut self, subscription: Subscription, kind: SessionKind, messages: u32) {
        let ack_deadline = self.subscriptions[&subscription].settings.ack_deadline;
        let session = self
            .frontend
            .open(subscription, kind, ack_deadline, messages);
        self.note(What::Opened {
            session: frontend::number(session),
            subscription,
            stream: kind == SessionKind::Stream,
            messages_max: messages,
        });
        self.introduce(session);
    }

    /// Tells the leader of a session.
    pub(super) fn introduce(&mut self, session: SessionId) {
        let Some(pull) = self.frontend.get(session) else {
            return;
        };
        let open = OpenSession {
            session,
            topic: TOPIC,
            subscription: incarnation(pull.subscription),
            kind: pull.kind,
            ack_deadline: pull.ack_deadline,
            client: client_of(session, pull.kind),
            first: session,
            received: pull.received,
        };
        if self.leader.is_some() {
            self.frontend.introduce(session);
            self.arrive(Input::OpenSession(open));
        }
    }

    fn close_some_session(&mut self) {
        let sessions = self.frontend.ids();
        if !sessions.is_empty() {
            let session = sessions[self.chance.below(sessions.len() as u64) as usize];
            self.close(session);
        }
    }

    pub(super) fn close(&mut self, session: SessionId) {
        if self.frontend.close(session) {
            let number = frontend::number(session);
            self.note(What::Closed { session: number });
            let returned = Vec::new();
            self.arrive(Input::CloseSession { session, returned });
        }
    }

    /// Whether a subscription has a message that is not settled.
    pub(super) fn has_backlog(&self, subscription: Subscription) -> Result<bool, Fault> {
        let name = incarnation(subscription);
        let Some(backlog) = Backlog::open(self.log.view(), TOPIC, name)? else {
            return Ok(false);
        };
        for run in backlog.runs(MessageId::ZERO) {
            let (key, run) = run?;
            for number in 0..run.count {
                if !backlog.is_settled(key.first.plus(number))? {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }
}

/// Some streams say who they are; one of two that say the same takes over from the other.
fn client_of(session: SessionId, kind: SessionKind) -> Option<ClientId> {
    let says_who = kind == SessionKind::Stream && session.number.is_multiple_of(3);
    says_who.then(|| ClientId(format!("client {}", session.number % 2).into()))
}

/// Each subscription has a topic of its own for its dead letters, which names it.
fn dead_letters_of(subscription: Subscription) -> TopicName {
    let name = format!("projects/p/topics/dead-{}", subscription.0);
    TopicName::parse(&name).expect("the name is well-formed")
}

/// The subscription of [`dead_letters_of`].
pub(super) fn source_of(dead_letters: &TopicName) -> Subscription {
    let number = dead_letters.id().trim_start_matches("dead-").parse();
    Subscription(number.expect("the topic names a subscription"))
}

/// An encoded message: the value as data (field 1), and the key (field 5).
fn encode(value: Value, key: &str) -> Bytes {
    let mut message = BytesMut::new();
    message.put_slice(&[1 << 3 | 2, 8]);
    message.put_u64(value.0);
    if !key.is_empty() {
        message.put_slice(&[5 << 3 | 2, key.len() as u8]);
        message.put_slice(key.as_bytes());
    }
    message.freeze()
}

/// The value and the key of a message that [`encode`] made.
pub(super) fn decode(message: &[u8]) -> (Value, Key) {
    let value = message[2..10].try_into().expect("a slice of eight bytes");
    let key = match message.get(10) {
        Some(tag) if *tag == 5 << 3 | 2 => &message[12..12 + usize::from(message[11])],
        _ => &[],
    };
    let key = std::str::from_utf8(key).expect("keys are text");
    (Value(u64::from_be_bytes(value)), Key::from(key))
}

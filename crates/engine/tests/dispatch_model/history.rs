//! One random history.

use std::time::Duration;

use bytes::Bytes;
use engine::dispatch::{Credit, Delivered, Forwarded, Input, SessionKind};
use engine::shard::Command;
use engine::subscription::{DeadLetterPolicy, RetryPolicy, SubscriptionSettings};
use model::{AckId, Incarnation, SessionId, SubscriptionName, Timestamp, TopicName};

use crate::bench::{self, Bench, Heard, SUB};
use crate::chance::Chance;
use crate::promises::{Known, Promises};

const STEPS: u64 = 400;
/// Longer than anything is held back by a policy.
const BACK_OFF_MAX: Duration = Duration::from_secs(31);
const KEYS: [&str; 4] = ["", "a", "b", "c"];
const CLIENTS: [&str; 2] = ["one", "two"];

struct History {
    chance: Chance,
    bench: Bench,
    promises: Promises,
    open: Vec<SessionId>,
    /// Streams whose way is lost, and whose clients have them still.
    lost: Vec<SessionId>,
    /// Every delivery that a client ever got, so that late and repeated acks happen.
    received: Vec<(SessionId, Delivered)>,
    texts: u64,
    version: u64,
    policy_matters_until: Timestamp,
    steps: Vec<String>,
    seed: u64,
}

/// Plays a history and judges it.
pub(crate) fn play(seed: u64) {
    let mut chance = Chance::new(seed);
    let settings = first_settings(&mut chance);
    let mut bench = Bench::new(settings.clone());
    if chance.one_in(2) {
        // A subscription that acknowledges nothing keeps everything stored.
        bench.attach(Incarnation(11), 1, bench::settings(false));
    }
    bench.hold_log = true;
    bench.hold_offers = true;
    let mut history = History {
        chance,
        bench,
        promises: Promises::new(settings),
        open: Vec::new(),
        lost: Vec::new(),
        received: Vec::new(),
        texts: 0,
        version: 1,
        policy_matters_until: Timestamp::ZERO,
        steps: Vec::new(),
        seed,
    };
    for _ in 0..STEPS {
        history.step();
        history.listen();
        if history.chance.one_in(60) {
            history.rest();
        }
    }
    history.drain();
    history.steps.clear();
}

fn first_settings(chance: &mut Chance) -> SubscriptionSettings {
    let mut settings = bench::settings(chance.one_in(2) || chance.one_in(2));
    settings.exactly_once = chance.one_in(3);
    settings.dead_letter = chance.one_in(4).then(dead_letter);
    settings.retry = chance.one_in(4).then(retry);
    if chance.one_in(3) {
        settings.filter = "attributes:wanted".into();
    }
    settings
}

/// Whether messages may be held back that nobody has.
fn has_policy(settings: &SubscriptionSettings) -> bool {
    settings.retry.is_some() || settings.dead_letter.is_some()
}

fn dead_letter() -> DeadLetterPolicy {
    DeadLetterPolicy {
        topic: TopicName::parse("projects/p/topics/dead").unwrap(),
        source: SubscriptionName::parse("projects/p/subscriptions/sub").unwrap(),
        attempts_max: 5,
    }
}

fn retry() -> RetryPolicy {
    RetryPolicy {
        minimum: Duration::from_secs(1),
        maximum: Duration::from_secs(4),
    }
}

/// An encoded message with data, and with the attribute that the filter wants or without.
fn encoded(text: &str, wanted: bool) -> Bytes {
    let mut out = bench::message(text).to_vec();
    if wanted {
        out.extend_from_slice(b"\x12\x0b\x0a\x06wanted\x12\x011");
    }
    out.into()
}

impl History {
    fn step(&mut self) {
        match self.chance.below(100) {
            0..20 => self.publish(),
            20..35 => self.grant(),
            35..50 => self.log(),
            50..65 => self.acknowledge(),
            65..72 => self.nack(),
            72..77 => self.extend(),
            77..84 => self.pass(),
            84..90 => self.open(),
            90..94 => self.close(),
            94..96 => self.answer_forward(),
            96..98 => self.change_settings(),
            98 => self.session_deadline(),
            _ => self.change_leader(),
        }
    }

    fn note(&mut self, what: String) {
        self.steps.push(what);
    }

    /// Judges what has happened since the last time.
    fn listen(&mut self) {
        for command in std::mem::take(&mut self.bench.commands) {
            if let Command::Rewind(rewind) = command {
                for lane in rewind.lanes {
                    let key = char::from(lane.strand.0[0]);
                    let (from, generation) = (lane.from.counter(), lane.generation);
                    self.note(format!("  rewind {key} to {from} before {generation}"));
                    self.promises.rewound(lane.strand, lane.from);
                }
            }
        }
        for heard in std::mem::take(&mut self.bench.heard) {
            self.note(format!("  {}", describe(&heard)));
            self.promises.hear(heard);
        }
        self.promises.expire(self.bench.now);
        for session in self.open.clone() {
            let received = self.bench.take(session);
            self.received
                .extend(received.into_iter().map(|delivery| (session, delivery)));
            if self.bench.ended(session).is_some() {
                self.open.retain(|open| *open != session);
                self.promises.session_closed(session, self.bench.now, &[]);
                self.bench.close(session);
            }
        }
    }

    fn publish(&mut self) {
        let key = *self.chance.pick(&KEYS).unwrap();
        let count = 1 + self.chance.below(3);
        let filtered = !self.promises.settings.filter.is_empty();
        let mut texts = Vec::new();
        let mut messages = Vec::new();
        for _ in 0..count {
            self.texts += 1;
            let text = format!("m{}", self.texts);
            let wanted = !filtered || self.chance.one_in(2);
            messages.push(encoded(&text, wanted));
            texts.push((text, wanted));
        }
        self.note(format!("publish {key:?} {texts:?}"));
        // The promise begins with the answer: publish, and apply all that is in the log.
        self.bench.apply_log();
        self.bench.hold_log = false;
        let ids = self.bench.publish_encoded(key, &messages);
        self.bench.hold_log = true;
        let wanted = ids.iter().zip(&texts).filter(|(_, (_, wanted))| *wanted);
        let (ids, texts): (Vec<_>, Vec<_>) =
            wanted.map(|(id, (text, _))| (*id, text.clone())).unzip();
        let ids_now: Vec<_> = ids.iter().map(|id| id.counter()).collect();
        self.note(format!("  as {ids_now:?}"));
        self.promises.published(key, &ids, &texts);
    }

    fn grant(&mut self) {
        let Some(session) = self.chance.pick(&self.open).copied() else {
            return;
        };
        let limit = Credit {
            messages: 1 + self.chance.below(4) as u32,
            bytes: 1 + self.chance.below(100),
        };
        self.note(format!("grant {session} {limit:?}"));
        self.bench.grant(session, limit);
    }

    fn log(&mut self) {
        match self.chance.below(3) {
            0 => drop(self.bench.apply_entry()),
            1 => drop(self.bench.tell_outcomes()),
            _ => self.bench.apply_log(),
        }
        self.note("log".into());
    }

    fn some_received(&mut self) -> Vec<Delivered> {
        let recent = self.received.len().saturating_sub(12);
        let from = if self.chance.one_in(8) { 0 } else { recent };
        let some = self.chance.some_of(&self.received[from..]);
        some.into_iter().map(|(_, delivery)| delivery).collect()
    }

    fn acknowledge(&mut self) {
        let some = self.some_received();
        self.note(format!("ack {}", names(&some)));
        self.send_ack(&some);
    }

    fn send_ack(&mut self, deliveries: &[Delivered]) {
        for delivery in deliveries {
            self.promises.sent_ack(delivery.ack);
        }
        self.bench.send_ack(deliveries);
    }

    fn nack(&mut self) {
        let some = self.some_received();
        self.note(format!("nack {}", names(&some)));
        self.bench.nack(&some);
        for delivery in &some {
            self.promises.nacked(&delivery.ack);
        }
    }

    fn extend(&mut self) {
        let some = self.some_received();
        let seconds = 1 + self.chance.below(30);
        self.note(format!("extend {} {seconds}", names(&some)));
        for delivery in &some {
            let deadline = self.bench.now.plus(Duration::from_secs(seconds));
            self.promises.sent_change(delivery.ack, deadline);
        }
        self.bench.modify(&some, seconds);
    }

    fn pass(&mut self) {
        let millis = self.chance.below(8_000);
        self.note(format!("pass {millis} ms"));
        // In pieces, so that what is delivered meanwhile is judged by the right time.
        for _ in 0..8 {
            self.bench.pass(Duration::from_millis(millis / 8));
            self.listen();
        }
    }

    fn open(&mut self) {
        if self.open.len() >= 5 {
            return self.close();
        }
        if let Some(stream) = self.lost.pop() {
            match self.chance.one_in(2) {
                true => return self.come_back(stream),
                false => self.lost.insert(0, stream),
            }
        }
        let credit = Credit {
            messages: 1 + self.chance.below(10) as u32,
            bytes: 10 + self.chance.below(100),
        };
        let client = match self.chance.below(3) {
            0 => self.chance.pick(&CLIENTS).copied(),
            _ => None,
        };
        let (kind, session) = match self.chance.below(3) {
            0 => (SessionKind::Pull, self.bench.waiting_pull(credit.messages)),
            _ => (
                SessionKind::Stream,
                match client {
                    Some(client) => self.bench.stream_of(client, credit),
                    None => self.bench.stream(credit),
                },
            ),
        };
        let client = client.filter(|_| kind == SessionKind::Stream);
        self.note(format!("open {session} {kind:?} {client:?} {credit:?}"));
        let known = Known {
            kind,
            client: client.map(str::to_owned),
            deadline: bench::ACK_DEADLINE,
            messages_max: credit.messages,
        };
        self.promises.sessions.insert(session, known);
        self.open.push(session);
    }

    fn close(&mut self) {
        if self.open.is_empty() {
            return;
        }
        let at = self.chance.below(self.open.len() as u64) as usize;
        let session = self.open.swap_remove(at);
        if self.chance.one_in(4) {
            self.note(format!("lose {session}"));
            self.promises.session_lost(session, self.bench.now);
            self.bench.lose(session);
            if self.promises.sessions[&session].kind == SessionKind::Stream {
                self.lost.push(session);
            }
            return;
        }
        let mut returned = Vec::new();
        if self.chance.one_in(2) {
            let of_session = self.received.iter().filter(|(to, _)| *to == session);
            let all: Vec<_> = of_session.map(|(_, delivery)| delivery.clone()).collect();
            returned = self.chance.some_of(&all);
        }
        self.note(format!("close {session} returning {}", names(&returned)));
        self.promises
            .session_closed(session, self.bench.now, &returned);
        self.bench.close_returning(session, &returned);
    }

    fn answer_forward(&mut self) {
        if self.bench.forwards.is_empty() {
            return;
        }
        let (forward, ..) = self.bench.forwards.remove(0);
        let result = match self.chance.below(4) {
            0 => Forwarded::NoTopic,
            1 => Forwarded::Unknown,
            _ => Forwarded::Stored,
        };
        self.note(format!("forwarded {result:?}"));
        self.bench.forwarded(forward, result);
    }

    fn change_settings(&mut self) {
        let mut settings = self.promises.settings.clone();
        match self.chance.below(3) {
            0 => settings.exactly_once = !settings.exactly_once,
            1 => settings.dead_letter = self.chance.one_in(2).then(dead_letter),
            _ => settings.retry = self.chance.one_in(2).then(retry),
        }
        let exactly_once = settings.exactly_once;
        let dead_letter = settings.dead_letter.is_some();
        let retry = settings.retry.is_some();
        self.note(format!("settings {exactly_once} {dead_letter} {retry}"));
        self.set(settings);
    }

    fn set(&mut self, settings: SubscriptionSettings) {
        if has_policy(&self.promises.settings) {
            self.policy_matters_until = self.bench.now.plus(BACK_OFF_MAX);
        }
        self.bench.apply_log();
        self.listen();
        self.version += 1;
        self.bench.hold_log = false;
        self.bench.attach(SUB, self.version, settings.clone());
        self.bench.hold_log = true;
        self.listen();
        self.promises.change_settings(settings);
    }

    fn session_deadline(&mut self) {
        let Some(session) = self.chance.pick(&self.open).copied() else {
            return;
        };
        // What is being logged for it still has the old one.
        self.bench.apply_log();
        self.listen();
        let ack_deadline = Duration::from_secs(10 + self.chance.below(20));
        let known = self.promises.sessions.get_mut(&session);
        known.expect("it is open").deadline = ack_deadline;
        self.bench.input(Input::SessionDeadline {
            session,
            ack_deadline,
        });
    }

    fn change_leader(&mut self) {
        self.note("change of leader".into());
        for _ in 0..self.chance.below(4) {
            self.bench.apply_entry();
        }
        self.listen();
        self.bench.change_leader();
        self.bench.forwards.clear();
        self.promises.leader_changed();
        for session in std::mem::take(&mut self.open) {
            let is_stream = self.promises.sessions[&session].kind == SessionKind::Stream;
            match is_stream && session.number.is_multiple_of(2) {
                true => self.come_back(session),
                false => self.promises.session_lost(session, self.bench.now),
            }
        }
        if self.chance.one_in(4) {
            self.end_process();
        }
    }

    /// The frontend of all streams restarts, and the leader hears of it.
    fn end_process(&mut self) {
        self.note("end of the process".into());
        self.promises.process_ended(self.bench.now);
        self.open.clear();
        self.lost.clear();
        self.bench.end_process();
    }

    /// The frontend of a stream, and its client, are still there after a change of the leader, or
    /// though the way to the leader was lost.
    fn come_back(&mut self, stream: SessionId) {
        let session = self.bench.come_back(stream);
        self.note(format!("{stream} comes back as {session}"));
        self.promises.came_back(stream, session);
        for (to, _) in self.received.iter_mut().filter(|(to, _)| *to == stream) {
            *to = session;
        }
        self.open.push(session);
    }

    /// Lets everything happen that can, with a session that takes all.
    fn rest(&mut self) {
        self.note("rest".into());
        self.bench.hold_offers = false;
        self.bench.hold_log = false;
        self.bench.apply_log();
        self.listen();
        let ample = Credit {
            messages: 10_000,
            bytes: 1_000_000,
        };
        let session = self.bench.stream(ample);
        let known = Known {
            kind: SessionKind::Stream,
            client: None,
            deadline: bench::ACK_DEADLINE,
            messages_max: ample.messages,
        };
        self.promises.sessions.insert(session, known);
        self.open.push(session);
        self.bench.answer_offers();
        self.listen();
        self.pass_a_second();
        let is_held_back = has_policy(&self.promises.settings)
            || self.policy_matters_until > self.bench.now
            || !self.bench.forwards.is_empty();
        if !is_held_back {
            let before = self.promises.forgotten(&self.bench.view);
            self.pass_a_second();
            let after = self.promises.forgotten(&self.bench.view);
            let still: Vec<_> = before.intersection(&after).collect();
            assert!(still.is_empty(), "P10: {still:?} are forgotten");
        }
        self.bench.hold_offers = true;
        self.bench.hold_log = true;
    }

    fn pass_a_second(&mut self) {
        for _ in 0..20 {
            self.bench.pass(Duration::from_millis(50));
            self.listen();
        }
    }

    /// Acknowledges everything, until nothing is left.
    fn drain(&mut self) {
        self.rest();
        self.bench.hold_offers = false;
        self.bench.hold_log = false;
        self.bench.apply_log();
        for _ in 0..200 {
            self.listen();
            for (forward, ..) in std::mem::take(&mut self.bench.forwards) {
                self.bench.forwarded(forward, Forwarded::Stored);
            }
            let received = std::mem::take(&mut self.received);
            let received: Vec<_> = received.into_iter().map(|(_, received)| received).collect();
            if !received.is_empty() {
                self.send_ack(&received);
                continue;
            }
            if self.promises.unsettled(&self.bench.view).is_empty() {
                break;
            }
            for _ in 0..10 {
                self.bench.pass(Duration::from_millis(500));
                self.listen();
            }
        }
        let left = self.promises.unsettled(&self.bench.view);
        assert!(left.is_empty(), "P4: {left:?} are never settled");
        self.bench.pass_seconds(40);
        for session in &self.open {
            self.bench.assert_all_credit_is_back(*session);
        }
    }
}

impl Drop for History {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("seed {}", self.seed);
            let from = self.steps.len().saturating_sub(900);
            for step in &self.steps[from..] {
                eprintln!("{step}");
            }
        }
    }
}

fn describe(heard: &Heard) -> String {
    match heard {
        Heard::Delivered {
            session,
            batch,
            delivery,
            at,
            lane,
            ..
        } => {
            let (id, millis) = (name(&delivery.ack), at.0 / 1_000_000);
            let position = lane.position.counter();
            format!("{id} to {session} in {batch} at {millis}, lane at {position}")
        }
        Heard::Acknowledged(id, reply) => format!("ack of {}: {reply:?}", name(id)),
        Heard::Modified(id, to, reply, _) => format!("change of {} to {to:?}: {reply:?}", name(id)),
        Heard::Forwarded(message) => format!("{} to the dead letters", bench::data(message)),
    }
}

fn names(deliveries: &[Delivered]) -> String {
    let names: Vec<_> = deliveries
        .iter()
        .map(|delivery| name(&delivery.ack))
        .collect();
    names.join(" ")
}

/// Key, message and delivery.
fn name(id: &AckId) -> String {
    let key = match id.key.0[0] {
        0 => '-',
        letter => char::from(letter),
    };
    format!("{key}{}@{}", id.message.counter(), id.generation)
}

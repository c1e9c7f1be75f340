//! The shard that a script speaks to: one topic, a log with one writer, a state in memory.

use std::time::Duration;

use bytes::Bytes;
use engine::kv::Overlay;
use engine::kv::memory::MemoryView;
use engine::shard::{
    Acknowledge, At, Attach, Backlog, CloseTopic, Command, Detach, DropSealed, Extend, Fail,
    Failed, Grant, Granted, LaneRewind, Opening, Publish, Reopen, Reply, Rewind, Seal, SealAbsent,
    Sweep, Swept, apply, read,
};
use engine::table::lane::Lane;
use engine::table::run::PayloadAt;
use engine::table::sealed::Purpose;
use engine::table::strand::StrandKey;
use model::run::RunPayload;
use model::{Epoch, Incarnation, MessageId, Timestamp};

use crate::words::{REGISTRY, SHARD, ack, answer, cause, delivery, key, number, opening, settings};

const TOPIC: Incarnation = Incarnation(1);

fn strand(key_word: &str) -> StrandKey {
    StrandKey {
        topic: TOPIC,
        strand: key(key_word),
    }
}

fn epoch(word: &str) -> Epoch {
    Epoch(number(word))
}

#[derive(Default)]
pub(crate) struct Shard {
    view: MemoryView,
    index: u64,
    time: Timestamp,
    /// The names of all incarnations: a name may be attached again, as something new.
    subscriptions: Vec<String>,
}

impl Shard {
    /// Runs one line, and answers in lines.
    pub(crate) fn run(&mut self, line: &str) -> Vec<String> {
        let words: Vec<_> = line.split_whitespace().collect();
        match &words[..] {
            ["attach", name, settings @ ..] => self.attach(name, settings),
            ["detach", name] => self.detach(name),
            ["close"] => self.answer(Command::CloseTopic(CloseTopic { topic: TOPIC }), &[]),
            ["publish", key, count] => self.publish(key, count, opening("1", "0")),
            ["publish", key, count, "unclaimed"] => self.publish(key, count, None),
            ["publish", key, count, "epoch", epoch] => {
                self.publish(key, count, opening(epoch, "0"))
            }
            ["publish", key, count, "epoch", epoch, "above", floor] => {
                self.publish(key, count, opening(epoch, floor))
            }
            ["acknowledge", name, key, acks @ ..] => self.acknowledge(name, key, acks),
            ["rewind", name, key, delivery] => self.rewind(name, key, delivery),
            ["grant", name, key, deliveries @ ..] => self.grant(name, key, deliveries),
            ["extend", name, deliveries @ ..] => self.extend(name, deliveries),
            ["fail", name, key, cause, deliveries @ ..] => self.fail(name, key, cause, deliveries),
            ["seal", key, epoch] => self.seal(key, epoch),
            ["seal", key, epoch, "absent"] => self.seal_absent(key, epoch),
            ["reopen", key, epoch, "since", since] => self.reopen(key, epoch, since),
            ["drop", key, epoch] => self.drop_sealed(key, epoch),
            ["sweep", what @ ..] => self.sweep(what),
            ["wait", seconds] => self.wait(seconds),
            ["next", name, key] => self.next(name, key),
            ["backlog", name] => self.backlog_of(name),
            ["stored"] => self.stored(),
            _ => panic!("unknown command: {line}"),
        }
    }

    fn answer(&mut self, command: Command, asked: &[&str]) -> Vec<String> {
        answer(&self.apply(&command), asked)
    }

    fn apply(&mut self, command: &Command) -> Reply {
        self.index += 1;
        let at = At {
            shard: SHARD,
            term: 1,
            index: self.index,
            payload_number: 0,
            time: self.time,
        };
        if let Command::Publish(publish) = command {
            let place = PayloadAt {
                term: at.term,
                index: at.index,
                number: 0,
            };
            self.view.store_payload(place, publish.payload.clone());
        }
        let mut overlay = Overlay::new(&self.view);
        let outcome = apply(&mut overlay, command, at).unwrap();
        let writes = overlay.into_writes();
        self.view.commit(writes);
        outcome.reply
    }

    fn subscription(&self, name: &str) -> Incarnation {
        let found = self.subscriptions.iter().rposition(|known| known == name);
        Incarnation(found.unwrap_or_else(|| panic!("{name} was never attached")) as u64)
    }

    fn attach(&mut self, name: &str, words: &[&str]) -> Vec<String> {
        self.subscriptions.push(name.into());
        let subscription = self.subscription(name);
        let attach = Attach {
            topic: TOPIC,
            subscription,
            version: 1,
            settings: settings(words),
        };
        self.answer(Command::Attach(attach), &[])
    }

    fn detach(&mut self, name: &str) -> Vec<String> {
        let detach = Detach {
            topic: TOPIC,
            subscription: self.subscription(name),
        };
        self.answer(Command::Detach(detach), &[])
    }

    fn publish(&mut self, key_word: &str, count: &str, opening: Option<Opening>) -> Vec<String> {
        let count = number(count) as u32;
        let messages = vec![Bytes::from_static(b"message"); count as usize];
        let publish = Publish {
            topic: TOPIC,
            strand: key(key_word),
            keyed: key_word != "-",
            opening,
            count,
            bytes: 7 * u64::from(count),
            payload: RunPayload::new(&messages),
        };
        self.answer(Command::Publish(publish), &[])
    }

    fn acknowledge(&mut self, name: &str, key_word: &str, acks: &[&str]) -> Vec<String> {
        let messages = acks.iter().map(|word| {
            let (message, generation) = ack(word);
            (key(key_word), message, generation)
        });
        let acknowledge = Acknowledge {
            topic: TOPIC,
            subscription: self.subscription(name),
            messages: messages.collect(),
        };
        self.answer(Command::Acknowledge(acknowledge), acks)
    }

    fn rewind(&mut self, name: &str, key_word: &str, word: &str) -> Vec<String> {
        let (from, generation) = delivery(word);
        let lane = LaneRewind {
            strand: key(key_word),
            from,
            generation,
        };
        let rewind = Rewind {
            topic: TOPIC,
            subscription: self.subscription(name),
            lanes: vec![lane],
        };
        self.answer(Command::Rewind(rewind), &[])
    }

    fn grant(&mut self, name: &str, key_word: &str, words: &[&str]) -> Vec<String> {
        let deliveries = words.iter().map(|word| {
            let (message, generation) = delivery(word);
            Granted {
                strand: key(key_word),
                message,
                generation,
                duration: Duration::from_secs(10),
            }
        });
        let grant = Grant {
            topic: TOPIC,
            subscription: self.subscription(name),
            stream: None,
            deliveries: deliveries.collect(),
        };
        self.answer(Command::Grant(grant), words)
    }

    fn extend(&mut self, name: &str, words: &[&str]) -> Vec<String> {
        let leases = words.iter().map(|word| {
            let (message, generation) = delivery(word);
            (message, generation, Duration::from_secs(60))
        });
        let extend = Extend {
            subscription: self.subscription(name),
            leases: leases.collect(),
        };
        self.answer(Command::Extend(extend), words)
    }

    fn fail(&mut self, name: &str, key_word: &str, why: &str, words: &[&str]) -> Vec<String> {
        let deliveries = words.iter().map(|word| {
            let (message, generation) = delivery(word);
            Failed {
                strand: key(key_word),
                message,
                generation,
                cause: cause(why),
            }
        });
        let fail = Fail {
            topic: TOPIC,
            subscription: self.subscription(name),
            deliveries: deliveries.collect(),
        };
        self.answer(Command::Fail(fail), words)
    }

    fn seal(&mut self, key_word: &str, epoch_word: &str) -> Vec<String> {
        self.change_strand(
            key_word,
            Command::Seal(Seal {
                registry: REGISTRY,
                strands: vec![(strand(key_word), epoch(epoch_word))],
                purpose: Purpose::Release,
            }),
        )
    }

    fn seal_absent(&mut self, key_word: &str, epoch_word: &str) -> Vec<String> {
        self.change_strand(
            key_word,
            Command::SealAbsent(SealAbsent {
                registry: REGISTRY,
                strands: vec![(strand(key_word), epoch(epoch_word))],
            }),
        )
    }

    fn reopen(&mut self, key_word: &str, epoch_word: &str, since: &str) -> Vec<String> {
        let opening = Opening {
            since: epoch(since),
            ..opening(epoch_word, "0").expect("it is one")
        };
        let strands = vec![(strand(key_word), opening)];
        self.change_strand(key_word, Command::Reopen(Reopen { strands }))
    }

    fn drop_sealed(&mut self, key_word: &str, epoch_word: &str) -> Vec<String> {
        self.change_strand(
            key_word,
            Command::DropSealed(DropSealed {
                registry: REGISTRY,
                strands: vec![(strand(key_word), epoch(epoch_word))],
            }),
        )
    }

    /// Answers with how the strand is afterwards.
    fn change_strand(&mut self, key_word: &str, command: Command) -> Vec<String> {
        assert_eq!(self.apply(&command), Reply::Done);
        let strand = read::strand(&self.view, TOPIC, key(key_word)).unwrap();
        vec![match strand {
            None => "gone".into(),
            Some(strand) if strand.sealed => format!("sealed at {}", strand.epoch),
            Some(strand) => format!("open at {}", strand.epoch),
        }]
    }

    fn sweep(&mut self, what: &[&str]) -> Vec<String> {
        let topic = TOPIC;
        let mut sweep = match what {
            ["detached", name] => Sweep::Detached {
                topic,
                subscription: self.subscription(name),
            },
            ["strands"] => Sweep::IdleStrands {
                topic,
                from: read::FIRST_STRAND,
            },
            ["settled"] => Sweep::Settled,
            _ => panic!("unknown sweep: {what:?}"),
        };
        loop {
            match self.apply(&Command::Sweep(sweep.clone())) {
                Reply::Swept(Swept::All) => return vec!["done".into()],
                Reply::Swept(Swept::MoreFrom(from)) => {
                    sweep = Sweep::IdleStrands { topic, from };
                }
                Reply::Swept(Swept::More) => (),
                other => panic!("{other:?}"),
            }
        }
    }

    fn wait(&mut self, seconds: &str) -> Vec<String> {
        self.time = self.time.plus(Duration::from_secs(number(seconds)));
        Vec::new()
    }

    fn next(&self, name: &str, key_word: &str) -> Vec<String> {
        let lane = self
            .backlog(name)
            .next_in_lane(key(key_word), MessageId::ZERO);
        let next = lane.unwrap();
        vec![next.map_or("none".into(), |next| next.counter().to_string())]
    }

    fn backlog(&self, name: &str) -> Backlog<'_> {
        let backlog = Backlog::open(&self.view, TOPIC, self.subscription(name)).unwrap();
        backlog.unwrap_or_else(|| panic!("{name} is not attached"))
    }

    fn backlog_of(&self, name: &str) -> Vec<String> {
        let backlog = self.backlog(name);
        let runs = backlog.runs(MessageId::ZERO).map(|run| run.unwrap());
        let messages = runs.flat_map(|(key, run)| (0..run.count).map(move |n| key.first.plus(n)));
        let unsettled = messages.filter(|message| !backlog.is_settled(*message).unwrap());
        let words: Vec<_> = unsettled
            .map(|message| message.counter().to_string())
            .collect();
        match words.len() {
            0 => vec!["none".into()],
            _ => vec![words.join(" ")],
        }
    }

    fn stored(&self) -> Vec<String> {
        let runs = read::runs(&self.view, TOPIC, MessageId::ZERO);
        let messages: u32 = runs.map(|run| run.unwrap().1.count).sum();
        let lanes = self.view.rows_of::<Lane>();
        vec![format!("{messages} messages, {lanes} lanes")]
    }
}

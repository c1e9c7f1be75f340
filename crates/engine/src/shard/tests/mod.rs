//! One shard in memory, and what its commands do to it.

mod acknowledge;
mod backlog_size;
mod cost;
mod delivery;
mod publish;
mod random;
mod release;
mod rewind;
mod stage;
mod sweep;

use std::time::Duration;

use bytes::Bytes;
use model::run::RunPayload;
use model::{
    Epoch, Generation, Incarnation, KeyHash, MessageId, RegistryNumber, ShardNumber, Term,
    Timestamp,
};

use super::*;
use crate::kv::Overlay;
use crate::kv::memory::MemoryView;
use crate::subscription::{RetryPolicy, SubscriptionSettings};

const TOPIC: Incarnation = Incarnation(1);
const SHARD: ShardNumber = ShardNumber(3);
const REGISTRY: RegistryNumber = RegistryNumber(1);
const UNKEYED: KeyHash = strand(0);

const fn strand(number: u8) -> KeyHash {
    KeyHash([number; 16])
}

/// The `number`-th message of the shard.
fn id(number: u64) -> MessageId {
    MessageId::new(number, SHARD)
}

fn generation(counter: u64) -> Generation {
    Generation {
        epoch: Epoch(1),
        term: Term(1),
        counter,
    }
}

fn settings(ordered: bool, exactly_once: bool) -> SubscriptionSettings {
    SubscriptionSettings {
        ordered,
        exactly_once,
        ack_deadline: Duration::from_secs(10),
        filter: String::new(),
        dead_letter: None,
        retry: Some(RetryPolicy {
            minimum: Duration::from_secs(1),
            maximum: Duration::from_secs(10),
        }),
    }
}

/// A shard, and a log that has only one writer.
#[derive(Default)]
struct World {
    view: MemoryView,
    index: u64,
    time: Timestamp,
}

impl World {
    fn apply(&mut self, command: Command) -> Outcome {
        self.index += 1;
        let at = At {
            shard: SHARD,
            term: 1,
            index: self.index,
            payload_number: 0,
            time: self.time,
        };
        if let Command::Publish(publish) = &command {
            self.view
                .store_payload(at.payload(), publish.payload.clone());
        }
        let mut overlay = Overlay::new(&self.view);
        let outcome = apply(&mut overlay, &command, at).unwrap();
        let writes = overlay.into_writes();
        self.view.commit(writes);
        outcome
    }

    fn reply(&mut self, command: Command) -> Reply {
        self.apply(command).reply
    }

    fn attach(&mut self, subscription: u64, settings: SubscriptionSettings) {
        let attach = Attach {
            topic: TOPIC,
            subscription: Incarnation(subscription),
            version: 1,
            settings,
        };
        assert_eq!(self.reply(Command::Attach(attach)), Reply::Done);
    }

    fn detach(&mut self, subscription: u64) {
        let subscription = Incarnation(subscription);
        let topic = TOPIC;
        self.apply(Command::Detach(Detach {
            topic,
            subscription,
        }));
    }

    fn publish(&mut self, strand: KeyHash, count: u32) -> Reply {
        self.reply(Command::Publish(publish(strand, count)))
    }

    fn acknowledge(
        &mut self,
        subscription: u64,
        messages: &[(KeyHash, u64, Option<u64>)],
    ) -> Vec<AckOutcome> {
        let messages = messages
            .iter()
            .map(|(strand, message, counter)| (*strand, id(*message), counter.map(generation)));
        let acknowledge = Acknowledge {
            topic: TOPIC,
            subscription: Incarnation(subscription),
            messages: messages.collect(),
        };
        match self.reply(Command::Acknowledge(acknowledge)) {
            Reply::Acknowledged(outcomes) => outcomes,
            other => panic!("{other:?}"),
        }
    }

    fn grant(&mut self, subscription: u64, message: u64, counter: u64) -> LeaseOutcome {
        let granted = Granted {
            strand: strand(1),
            message: id(message),
            generation: generation(counter),
            duration: Duration::from_secs(10),
        };
        let grant = Grant {
            topic: TOPIC,
            subscription: Incarnation(subscription),
            stream: None,
            deliveries: vec![granted],
        };
        lease_outcome(self.reply(Command::Grant(grant)))
    }

    fn fail(
        &mut self,
        subscription: u64,
        message: u64,
        counter: u64,
        cause: FailCause,
    ) -> LeaseOutcome {
        let failed = Failed {
            strand: strand(1),
            message: id(message),
            generation: generation(counter),
            cause,
        };
        let fail = Fail {
            topic: TOPIC,
            subscription: Incarnation(subscription),
            deliveries: vec![failed],
        };
        lease_outcome(self.reply(Command::Fail(fail)))
    }

    fn rewind(&mut self, subscription: u64, strand: KeyHash, from: u64, counter: u64) {
        let lane = LaneRewind {
            strand,
            from: id(from),
            generation: generation(counter),
        };
        let rewind = Rewind {
            topic: TOPIC,
            subscription: Incarnation(subscription),
            lanes: vec![lane],
        };
        assert_eq!(self.reply(Command::Rewind(rewind)), Reply::Done);
    }

    fn backlog(&self, subscription: u64) -> Backlog<'_> {
        let subscription = Incarnation(subscription);
        let backlog = Backlog::open(&self.view, TOPIC, subscription).unwrap();
        backlog.expect("the subscription takes part")
    }

    /// The first message of a lane that is neither settled nor marked.
    fn next(&self, subscription: u64, strand: KeyHash) -> Option<u64> {
        let next = self
            .backlog(subscription)
            .next_in_lane(strand, MessageId::ZERO);
        next.unwrap().map(MessageId::counter)
    }
}

fn publish(strand: KeyHash, count: u32) -> Publish {
    let messages = vec![Bytes::from_static(b"message"); count as usize];
    Publish {
        topic: TOPIC,
        strand,
        keyed: strand != UNKEYED,
        opening: opening(1),
        count,
        bytes: 7 * u64::from(count),
        payload: RunPayload::new(&messages),
    }
}

/// A claim that was answered with an epoch.
fn opening(epoch: u64) -> Option<Opening> {
    Some(Opening {
        registry: REGISTRY,
        epoch: Epoch(epoch),
        since: Epoch(1),
        id_floor: MessageId::ZERO,
    })
}

fn lease_outcome(reply: Reply) -> LeaseOutcome {
    match reply {
        Reply::Leases(outcomes) => outcomes[0],
        other => panic!("{other:?}"),
    }
}

//! The words of a script, and the answers in words.

use engine::shard::{AckOutcome, FailCause, LeaseOutcome, Opening, Rejected, Reply};
use engine::subscription::{RetryPolicy, SubscriptionSettings};
use model::{Epoch, Generation, KeyHash, MessageId, RegistryNumber, ShardNumber, Term};
use std::time::Duration;

/// The one registry group.
pub(crate) const REGISTRY: RegistryNumber = RegistryNumber(1);
pub(crate) const SHARD: ShardNumber = ShardNumber(1);

/// A key's name fills its hash; `-` is the strand of messages without a key.
pub(crate) fn key(word: &str) -> KeyHash {
    let mut hash = [0; 16];
    let name = if word == "-" { "" } else { word };
    assert!(name.len() <= hash.len(), "the key {word} is too long");
    hash[..name.len()].copy_from_slice(name.as_bytes());
    KeyHash(hash)
}

pub(crate) fn message(word: &str) -> MessageId {
    MessageId::new(number(word), SHARD)
}

/// How a key opens that was claimed at an epoch, with the floor of its registry group.
pub(crate) fn opening(epoch: &str, floor: &str) -> Option<Opening> {
    Some(Opening {
        registry: REGISTRY,
        epoch: Epoch(number(epoch)),
        since: Epoch(1),
        id_floor: message(floor),
    })
}

/// `MESSAGE@DELIVERY`.
pub(crate) fn delivery(word: &str) -> (MessageId, Generation) {
    let (message_word, counter) = word.split_once('@').expect("MESSAGE@DELIVERY");
    let generation = Generation {
        epoch: Epoch(0),
        term: Term(1),
        counter: number(counter),
    };
    (message(message_word), generation)
}

/// `MESSAGE@DELIVERY` or `MESSAGE`.
pub(crate) fn ack(word: &str) -> (MessageId, Option<Generation>) {
    match word.contains('@') {
        true => (delivery(word).0, Some(delivery(word).1)),
        false => (message(word), None),
    }
}

pub(crate) fn number(word: &str) -> u64 {
    word.parse()
        .unwrap_or_else(|_| panic!("{word} is no number"))
}

pub(crate) fn cause(word: &str) -> FailCause {
    match word {
        "nack" => FailCause::Nack,
        "expiry" => FailCause::Expiry,
        "returned" => FailCause::Returned,
        _ => panic!("{word} is no cause"),
    }
}

pub(crate) fn settings(words: &[&str]) -> SubscriptionSettings {
    SubscriptionSettings {
        ordered: words.contains(&"ordered"),
        exactly_once: words.contains(&"exactly-once"),
        ack_deadline: Duration::from_secs(10),
        filter: String::new(),
        dead_letter: None,
        retry: Some(RetryPolicy {
            minimum: Duration::from_secs(1),
            maximum: Duration::from_secs(1),
        }),
    }
}

/// One line for each thing that was asked for.
pub(crate) fn answer(reply: &Reply, asked: &[&str]) -> Vec<String> {
    match reply {
        Reply::Done => vec!["done".into()],
        Reply::Published { first, .. } => vec![format!("from {}", first.counter())],
        Reply::Acknowledged(outcomes) => {
            let outcomes = asked.iter().zip(outcomes);
            outcomes
                .map(|(word, outcome)| format!("{word} {}", of_ack(*outcome)))
                .collect()
        }
        Reply::Leases(outcomes) => {
            let outcomes = asked.iter().zip(outcomes);
            outcomes
                .map(|(word, outcome)| format!("{word} {}", of_lease(*outcome)))
                .collect()
        }
        Reply::Swept(swept) => vec![format!("{swept:?}")],
        Reply::Rejected(rejected) => vec![of_rejection(rejected)],
    }
}

fn of_ack(outcome: AckOutcome) -> &'static str {
    match outcome {
        AckOutcome::Elsewhere => "elsewhere",
        AckOutcome::Acknowledged => "ok",
        AckOutcome::Stale => "stale",
        AckOutcome::Unordered => "unordered",
    }
}

fn of_lease(outcome: LeaseOutcome) -> String {
    match outcome {
        LeaseOutcome::Elsewhere => "elsewhere".into(),
        LeaseOutcome::Done { attempts } => format!("ok after {attempts} attempts"),
        LeaseOutcome::Stale => "stale".into(),
    }
}

fn of_rejection(rejected: &Rejected) -> String {
    match rejected {
        Rejected::TopicClosed => "refused: the topic is closed".into(),
        Rejected::NotAttached => "refused: not attached".into(),
        Rejected::EpochFenced { current } => format!("refused: the epoch is {current}"),
        Rejected::Unclaimed => "refused: claim first".into(),
        Rejected::Sealed { at } => format!("refused: sealed at {at}"),
        Rejected::BelowFloor { floor } => format!("refused: opens above {floor} only"),
    }
}

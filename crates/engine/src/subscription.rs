//! How a subscription wants to be served: the part of its resource that shards need.

use std::time::Duration;

use model::{SubscriptionName, TopicName};
use serde::{Deserialize, Serialize};

/// Copied from the catalogue into every shard of the topic, see [`crate::table::attachment`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SubscriptionSettings {
    /// Whether messages of one key arrive in order. Fixed at creation.
    pub ordered: bool,
    /// Whether leases and acks are exactly-once.
    pub exactly_once: bool,
    /// The lease of a pulled delivery; a stream brings its own.
    pub ack_deadline: Duration,
    /// Which messages are wanted, in the language of filters; empty for all. Fixed at creation.
    pub filter: String,
    /// Where messages go that failed too often.
    pub dead_letter: Option<DeadLetterPolicy>,
    /// How long a failed message waits; without a policy not at all.
    pub retry: Option<RetryPolicy>,
}

/// Where messages go that failed too often.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeadLetterPolicy {
    /// The topic that they are published to.
    pub topic: TopicName,
    /// The subscription: its dead letters say where they came from.
    pub source: SubscriptionName,
    /// Failed deliveries before that: 5 to 100.
    pub attempts_max: u32,
}

/// Exponential back-off of one message: the minimum, doubled with each failure, the maximum at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RetryPolicy {
    /// The wait after the first failure.
    pub minimum: Duration,
    /// The longest wait.
    pub maximum: Duration,
}

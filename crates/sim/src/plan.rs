//! What a seed chooses before it begins: each run has its own mixture of load and faults, since a
//! mixture of everything at once hides what only shows in quiet.

use std::time::Duration;

use engine::subscription::{DeadLetterPolicy, RetryPolicy, SubscriptionSettings};
use model::{SubscriptionName, TopicName};

use crate::chance::Chance;

/// The mixture of one run.
#[derive(Debug)]
pub(crate) struct Plan {
    /// How many ordering keys; there are messages without a key besides.
    pub(crate) keys: u64,
    /// Between two publishes, about.
    pub(crate) publish_every: Duration,
    /// Messages of a publish at most.
    pub(crate) batch_max: u64,
    /// Between two crashes of the leader, about; none at all in some runs.
    pub(crate) crash_every: Option<Duration>,
    /// Between two changes of sessions, about.
    pub(crate) churn_every: Duration,
    /// Until a proposal is on the disks, at most.
    pub(crate) disk_max: Duration,
    /// Until a call or its answer arrives, at most.
    pub(crate) network_max: Duration,
    /// What consumers do.
    pub(crate) consumers: Consumers,
    /// Messages that a session lets the server have outstanding, at most.
    pub(crate) outstanding_max: u64,
    /// What the subscriptions are from the beginning; others come later.
    pub(crate) subscriptions: Vec<SubscriptionSettings>,
}

/// How many of a hundred deliveries are treated so. The rest is acknowledged.
#[derive(Debug)]
pub(crate) struct Consumers {
    pub(crate) nack: u64,
    pub(crate) forget: u64,
    pub(crate) extend: u64,
    pub(crate) late: u64,
    pub(crate) repeat: u64,
    /// How many of a hundred calls never arrive.
    pub(crate) lost: u64,
}

impl Plan {
    pub(crate) fn new(chance: &mut Chance) -> Self {
        let millis = Duration::from_millis;
        let rare = |chance: &mut Chance, most: u64| match chance.percent(50) {
            true => chance.below(most),
            false => 0,
        };
        let crash_every = millis(1_000 + chance.below(30_000));
        let mut plan = Plan {
            keys: 1 + chance.below(8),
            publish_every: millis(5 + chance.below(200)),
            batch_max: 1 + chance.below(5),
            crash_every: chance.percent(75).then_some(crash_every),
            churn_every: millis(200 + chance.below(8_000)),
            disk_max: millis(1 + chance.below(30)),
            network_max: millis(1 + chance.below(60)),
            consumers: Consumers {
                nack: rare(chance, 20),
                forget: rare(chance, 10),
                extend: rare(chance, 30),
                late: rare(chance, 6),
                repeat: rare(chance, 20),
                lost: rare(chance, 6),
            },
            outstanding_max: 1 + chance.below(60),
            subscriptions: Vec::new(),
        };
        for _ in 0..1 + chance.below(4) {
            plan.subscriptions.push(settings(chance));
        }
        plan
    }
}

/// Some subscription.
pub(crate) fn settings(chance: &mut Chance) -> SubscriptionSettings {
    let seconds = Duration::from_secs;
    let retry = RetryPolicy {
        minimum: Duration::from_millis(100),
        maximum: seconds(2),
    };
    let dead_letter = || DeadLetterPolicy {
        topic: TopicName::parse("projects/p/topics/dead").expect("the name is well-formed"),
        attempts_max: 5,
        source: SubscriptionName::parse("projects/p/subscriptions/alive")
            .expect("the name is well-formed"),
    };
    SubscriptionSettings {
        ordered: chance.percent(60),
        exactly_once: chance.percent(40),
        ack_deadline: seconds(10 + chance.below(5)),
        filter: String::new(),
        dead_letter: chance.percent(25).then(dead_letter),
        retry: chance.percent(25).then_some(retry),
    }
}

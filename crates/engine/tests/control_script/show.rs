//! Outcomes as lines of a script.

use std::time::Duration;

use engine::control::read::{ListError, Page};
use engine::control::request::InvalidRequest;
use engine::control::{Labels, Outcome, Rejected, Reply, StoragePolicy, Subscription, Topic};
use engine::shard;
use model::name::DELETED_TOPIC;
use model::{Incarnation, RegionName};

/// A page that was listed.
pub(crate) struct Listed {
    pub(crate) lines: Vec<String>,
    pub(crate) next_token: String,
}

pub(crate) fn outcome(outcome: &Outcome) -> Vec<String> {
    let reply = match &outcome.reply {
        Reply::Done => "done".to_owned(),
        Reply::Joined(node) => format!("joined as node {node}"),
        Reply::Topic(it) => topic(it),
        Reply::Subscription(it) => subscription(it),
        Reply::Rejected(it) => rejected(it),
    };
    let effects = outcome.effects.iter().map(effect);
    [reply].into_iter().chain(effects).collect()
}

fn effect(command: &shard::Command) -> String {
    match command {
        shard::Command::Attach(attach) => {
            let (subscription, topic) = (number(attach.subscription), number(attach.topic));
            format!("shards: attach {subscription} to {topic}")
        }
        shard::Command::Detach(detach) => {
            let (subscription, topic) = (number(detach.subscription), number(detach.topic));
            format!("shards: detach {subscription} from {topic}")
        }
        shard::Command::CloseTopic(close) => format!("shards: close {}", number(close.topic)),
        other => panic!("the catalogue proposes no {other:?}"),
    }
}

pub(crate) fn topic(topic: &Topic) -> String {
    format!(
        "topic {} {}{}{}",
        topic.name,
        number(topic.incarnation),
        topic.storage_policy.as_ref().map_or(String::new(), policy),
        labels(&topic.labels)
    )
}

fn policy(policy: &StoragePolicy) -> String {
    let regions: Vec<&str> = policy.allowed.iter().map(RegionName::as_str).collect();
    let in_transit = match policy.enforce_in_transit {
        true => ", also in transit",
        false => "",
    };
    format!(", in {}{in_transit}", regions.join("+"))
}

pub(crate) fn subscription(subscription: &Subscription) -> String {
    let settings = &subscription.settings;
    let topic = subscription
        .topic_name
        .as_ref()
        .map_or(DELETED_TOPIC, |name| name.as_str());
    let mut text = format!(
        "subscription {} {} of {topic}, ack deadline {}, retention {}",
        subscription.name,
        number(subscription.incarnation),
        seconds(settings.ack_deadline),
        seconds(subscription.message_retention),
    );
    match subscription.expiration_ttl {
        Some(ttl) => text += &format!(", expires after {}", seconds(ttl)),
        None => text += ", never expires",
    }
    if settings.ordered {
        text += ", ordered";
    }
    if settings.exactly_once {
        text += ", exactly once";
    }
    if !settings.filter.is_empty() {
        text += &format!(", filter '{}'", settings.filter);
    }
    if let Some(policy) = &settings.dead_letter {
        text += &format!(
            ", dead letters to {} after {}",
            policy.topic, policy.attempts_max
        );
        assert_eq!(policy.source, subscription.name);
    }
    if let Some(retry) = settings.retry {
        text += &format!(
            ", retries after {}..{}",
            seconds(retry.minimum),
            seconds(retry.maximum)
        );
    }
    if subscription.detached {
        text += ", detached";
    }
    text + &labels(&subscription.labels)
}

pub(crate) fn rejected(rejected: &Rejected) -> String {
    format!("rejected: {rejected}")
}

/// A request that is wrong, or that a later release serves.
pub(crate) fn invalid(invalid: &InvalidRequest) -> String {
    match invalid {
        InvalidRequest::NotSupported(_) => format!("not supported: {invalid}"),
        InvalidRequest::Name(_) => "invalid name".to_owned(),
        _ => format!("invalid: {invalid}"),
    }
}

pub(crate) fn page<T>(page: Page<T>, name: fn(&T) -> String) -> Listed {
    let mut lines: Vec<String> = page.items.iter().map(name).collect();
    if !page.next_token.is_empty() {
        lines.push("and more".to_owned());
    }
    Listed {
        lines,
        next_token: page.next_token,
    }
}

pub(crate) fn unlisted(error: &ListError) -> String {
    match error {
        ListError::Page(invalid) => format!("invalid: {invalid}"),
        ListError::TopicNotFound(_) => format!("rejected: {error}"),
        ListError::Fault(fault) => panic!("memory can be read: {fault}"),
    }
}

fn labels(labels: &Labels) -> String {
    labels
        .iter()
        .map(|(key, value)| format!(", {key}:{value}"))
        .collect()
}

fn seconds(duration: Duration) -> String {
    format!("{} s", duration.as_secs_f64())
}

/// The entry of the log that gave the incarnation; each is the first command of its entry.
fn number(incarnation: Incarnation) -> String {
    format!("#{}", incarnation.0 >> 12)
}

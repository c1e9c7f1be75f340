//! A subscription begins.

use std::time::Duration;

use model::limits::RESOURCES_PER_PROJECT_MAX;
use model::{ProjectId, SubscriptionName, TopicName};
use serde::{Deserialize, Serialize};

use super::rejected::Stop;
use super::table::NameKey;
use super::table::project::Project;
use super::table::topic_subscription::{TopicSubscription, TopicSubscriptionKey};
use super::{At, Labels, Outcome, Quota, Rejected, Reply, Subscription, Topic};
use crate::Fault;
use crate::kv::{Overlay, View, ViewExt};
use crate::shard;
use crate::subscription::{DeadLetterPolicy, RetryPolicy, SubscriptionSettings};

/// Creates a subscription under a free name, of a topic that exists.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CreateSubscription {
    /// Its name. Without one it gets a name in the project of its topic.
    pub name: Option<SubscriptionName>,
    /// The topic whose messages it receives; of any project.
    pub topic: TopicName,
    /// Its labels.
    pub labels: Labels,
    /// Whether messages of one key arrive in order.
    pub ordered: bool,
    /// Whether leases and acks are exactly-once.
    pub exactly_once: bool,
    /// The lease of a pulled delivery.
    pub ack_deadline: Duration,
    /// Which messages are wanted; a filter that can be read, or empty for all.
    pub filter: String,
    /// Where messages go that failed too often.
    pub dead_letter: Option<DeadLetter>,
    /// How long a failed message waits.
    pub retry: Option<RetryPolicy>,
    /// How long unacknowledged messages are kept.
    pub message_retention: Duration,
    /// How long it lives unused; `None` is for ever.
    pub expiration_ttl: Option<Duration>,
}

/// A dead-letter policy that has no subscription yet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeadLetter {
    /// The topic that messages are published to.
    pub topic: TopicName,
    /// Failed deliveries before that: 5 to 100.
    pub attempts_max: u32,
}

impl DeadLetter {
    /// The policy of one subscription.
    pub(super) fn policy(&self, source: &SubscriptionName) -> DeadLetterPolicy {
        DeadLetterPolicy {
            topic: self.topic.clone(),
            source: source.clone(),
            attempts_max: self.attempts_max,
        }
    }
}

impl CreateSubscription {
    pub(super) fn apply(&self, overlay: &mut Overlay<'_>, at: At) -> Result<Outcome, Stop> {
        let name = match &self.name {
            Some(name) => name.clone(),
            None => free_name(overlay, &self.topic.project(), at)?,
        };
        if exists(overlay, &name)? {
            return Err(Rejected::SubscriptionExists(name).into());
        }
        let Some(topic) = overlay.row::<Topic>(&NameKey::from(&self.topic))? else {
            return Err(Rejected::TopicNotFound(self.topic.clone()).into());
        };
        if let Some(dead_letter) = &self.dead_letter {
            check_dead_letter_topic(overlay, &dead_letter.topic, Some(&self.topic))?;
        }
        let project = Project::read(overlay, &name.project())?;
        check_quotas(&topic, project, &name)?;

        let subscription = self.subscription(name, &topic, at);
        write(overlay, &subscription, topic, project);
        Ok(Outcome {
            effects: vec![shard::Command::Attach(subscription.attach())],
            reply: Reply::Subscription(Box::new(subscription)),
        })
    }

    fn subscription(&self, name: SubscriptionName, topic: &Topic, at: At) -> Subscription {
        let dead_letter = self.dead_letter.as_ref();
        let settings = SubscriptionSettings {
            ordered: self.ordered,
            exactly_once: self.exactly_once,
            ack_deadline: self.ack_deadline,
            filter: self.filter.clone(),
            dead_letter: dead_letter.map(|it| it.policy(&name)),
            retry: self.retry,
        };
        Subscription {
            name,
            incarnation: at.incarnation(),
            topic: topic.incarnation,
            topic_name: Some(topic.name.clone()),
            version: at.number(),
            labels: self.labels.clone(),
            settings,
            message_retention: self.message_retention,
            expiration_ttl: self.expiration_ttl,
            detached: false,
        }
    }
}

/// A new policy must name a topic that exists, and another one than the subscription's own, from
/// where the dead letters would come back.
pub(super) fn check_dead_letter_topic(
    view: &dyn View,
    topic: &TopicName,
    own_topic: Option<&TopicName>,
) -> Result<(), Stop> {
    if own_topic == Some(topic) {
        return Err(Rejected::DeadLetterToOwnTopic(topic.clone()).into());
    }
    match view.row::<Topic>(&NameKey::from(topic))? {
        Some(_) => Ok(()),
        None => Err(Rejected::DeadLetterTopicNotFound(topic.clone()).into()),
    }
}

/// A name from the command's own number, so that each replica makes the same. Only if a user
/// happens to have taken it, a suffix is added.
fn free_name(view: &dyn View, project: &ProjectId, at: At) -> Result<SubscriptionName, Fault> {
    let base = format!(
        "projects/{}/subscriptions/sub-{}",
        project.as_str(),
        at.number()
    );
    let mut text = base.clone();
    for suffix in 1.. {
        let name = SubscriptionName::parse(&text).expect("letters, digits and dashes are allowed");
        if !exists(view, &name)? {
            return Ok(name);
        }
        text = format!("{base}-{suffix}");
    }
    unreachable!("a project has fewer subscriptions than there are suffixes")
}

fn exists(view: &dyn View, name: &SubscriptionName) -> Result<bool, Fault> {
    Ok(view.row::<Subscription>(&NameKey::from(name))?.is_some())
}

fn check_quotas(topic: &Topic, project: Project, name: &SubscriptionName) -> Result<(), Rejected> {
    let exceeded = if project.subscriptions as usize >= RESOURCES_PER_PROJECT_MAX {
        Quota::SubscriptionsOfProject(name.project())
    } else if topic.subscriptions as usize >= RESOURCES_PER_PROJECT_MAX {
        Quota::SubscriptionsOfTopic(topic.name.clone())
    } else {
        return Ok(());
    };
    Err(Rejected::QuotaExceeded(exceeded))
}

fn write(
    overlay: &mut Overlay<'_>,
    subscription: &Subscription,
    mut topic: Topic,
    mut project: Project,
) {
    let name = &subscription.name;
    overlay.put(&NameKey::from(name), subscription);
    let entry = TopicSubscription {
        name: name.clone(),
        detached: false,
    };
    overlay.put(&TopicSubscriptionKey::new(topic.incarnation, name), &entry);
    topic.subscriptions += 1;
    overlay.put(&NameKey::from(&topic.name), &topic);
    project.subscriptions += 1;
    project.write(overlay, &name.project());
}

//! A subscription changes.

use std::time::Duration;

use model::limits::{
    ACK_DEADLINE_SECONDS_DEFAULT, ACK_DEADLINE_SECONDS_DEFAULT_EXACTLY_ONCE, BACKOFF_MAX,
    DELIVERY_ATTEMPTS_DEFAULT, MINIMUM_BACKOFF_DEFAULT,
};
use model::{SubscriptionName, TopicName};
use serde::{Deserialize, Serialize};

use super::rejected::Stop;
use super::table::NameKey;
use super::{At, DeadLetter, Labels, Outcome, Rejected, Reply, Subscription, create_subscription};
use crate::kv::{Overlay, ViewExt};
use crate::shard;
use crate::subscription::RetryPolicy;

/// Changes a subscription: all of `changes`, or nothing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UpdateSubscription {
    /// Its name.
    pub name: SubscriptionName,
    /// What changes, one after another.
    pub changes: Vec<SubscriptionChange>,
}

/// One field of a subscription gets a new value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum SubscriptionChange {
    /// The labels, as a whole.
    Labels(Labels),
    /// Whether leases and acks are exactly-once.
    ExactlyOnce(bool),
    /// The ack deadline; `None` for the default, which depends on exactly-once.
    AckDeadline(Option<Duration>),
    /// How long unacknowledged messages are kept.
    MessageRetention(Duration),
    /// How long it lives unused; `None` is for ever.
    ExpirationTtl(Option<Duration>),
    /// The dead-letter policy, as a whole; `None` ends it.
    DeadLetter(Option<DeadLetter>),
    /// Only the topic of the dead-letter policy; without a policy, one with the default attempts.
    DeadLetterTopic(TopicName),
    /// Only the attempts of the dead-letter policy, which must exist.
    DeadLetterAttempts(u32),
    /// The retry policy, as a whole; `None` ends it.
    Retry(Option<RetryPolicy>),
    /// Only the minimum of the retry policy; without a policy, one with the default maximum.
    MinimumBackoff(Duration),
    /// Only the maximum of the retry policy; without a policy, one with the default minimum.
    MaximumBackoff(Duration),
}

impl UpdateSubscription {
    pub(super) fn apply(&self, overlay: &mut Overlay<'_>, at: At) -> Result<Outcome, Stop> {
        let key = NameKey::from(&self.name);
        let Some(mut subscription) = overlay.row::<Subscription>(&key)? else {
            return Err(Rejected::SubscriptionNotFound(self.name.clone()).into());
        };
        for change in &self.changes {
            change.make(&mut subscription)?;
        }
        if !model::sabotage!("update-unchecked") {
            self.check(overlay, &subscription)?;
        }
        subscription.version = at.number();
        overlay.put(&key, &subscription);
        let effects = match subscription.detached {
            // It has no part in its shards any more, so its settings are of no use there.
            true => Vec::new(),
            false => vec![shard::Command::Attach(subscription.attach())],
        };
        let reply = Reply::Subscription(Box::new(subscription));
        Ok(Outcome { reply, effects })
    }

    /// Checks what each change alone can't know.
    fn check(&self, overlay: &Overlay<'_>, changed: &Subscription) -> Result<(), Stop> {
        match changed.settings.retry {
            Some(RetryPolicy { minimum, maximum }) if minimum > maximum => {
                return Err(Rejected::BackoffsCrossed { minimum, maximum }.into());
            }
            _ => {}
        }
        // The topic of an old policy may be gone: that hinders no other change.
        let names_topic = |change: &SubscriptionChange| {
            use SubscriptionChange::{DeadLetter, DeadLetterTopic};
            matches!(change, DeadLetter(Some(_)) | DeadLetterTopic(_))
        };
        match &changed.settings.dead_letter {
            Some(policy) if self.changes.iter().any(names_topic) => {
                let own_topic = changed.topic_name.as_ref();
                create_subscription::check_dead_letter_topic(overlay, &policy.topic, own_topic)
            }
            _ => Ok(()),
        }
    }
}

impl SubscriptionChange {
    fn make(&self, subscription: &mut Subscription) -> Result<(), Rejected> {
        let name = &subscription.name;
        let settings = &mut subscription.settings;
        match self {
            Self::Labels(labels) => subscription.labels = labels.clone(),
            Self::ExactlyOnce(exactly_once) => settings.exactly_once = *exactly_once,
            Self::AckDeadline(deadline) => {
                let default = ack_deadline_default(settings.exactly_once);
                settings.ack_deadline = deadline.unwrap_or(default);
            }
            Self::MessageRetention(retention) => subscription.message_retention = *retention,
            Self::ExpirationTtl(ttl) => subscription.expiration_ttl = *ttl,
            Self::DeadLetter(new) => settings.dead_letter = new.as_ref().map(|it| it.policy(name)),
            Self::DeadLetterTopic(topic) => {
                let before = settings.dead_letter.take();
                let new = DeadLetter {
                    topic: topic.clone(),
                    attempts_max: before.map_or(DELIVERY_ATTEMPTS_DEFAULT, |it| it.attempts_max),
                };
                settings.dead_letter = Some(new.policy(name));
            }
            Self::DeadLetterAttempts(attempts) => match &mut settings.dead_letter {
                Some(policy) => policy.attempts_max = *attempts,
                None => return Err(Rejected::NoDeadLetterTopic(name.clone())),
            },
            Self::Retry(policy) => settings.retry = *policy,
            Self::MinimumBackoff(minimum) => {
                settings.retry.get_or_insert(RETRY_DEFAULT).minimum = *minimum;
            }
            Self::MaximumBackoff(maximum) => {
                settings.retry.get_or_insert(RETRY_DEFAULT).maximum = *maximum;
            }
        }
        Ok(())
    }
}

/// The retry policy whose fields are not given.
pub(super) const RETRY_DEFAULT: RetryPolicy = RetryPolicy {
    minimum: MINIMUM_BACKOFF_DEFAULT,
    maximum: BACKOFF_MAX,
};

/// The ack deadline that is not given.
pub(super) fn ack_deadline_default(exactly_once: bool) -> Duration {
    let seconds = match exactly_once {
        true => ACK_DEADLINE_SECONDS_DEFAULT_EXACTLY_ONCE,
        false => ACK_DEADLINE_SECONDS_DEFAULT,
    };
    Duration::from_secs(u64::from(seconds))
}

//! Requests about subscriptions.

use std::collections::BTreeMap;
use std::time::Duration;

use model::limits::{
    ACK_DEADLINE_SECONDS_MAX, ACK_DEADLINE_SECONDS_MIN, BACKOFF_MAX, DELIVERY_ATTEMPTS_DEFAULT,
    DELIVERY_ATTEMPTS_MAX, DELIVERY_ATTEMPTS_MIN, EXPIRATION_TTL_DEFAULT, EXPIRATION_TTL_MIN,
    MESSAGE_RETENTION_DEFAULT, MESSAGE_RETENTION_MAX, MESSAGE_RETENTION_MIN,
};
use model::{SubscriptionName, TopicName};

use super::mask::{self, Path};
use super::value::{self, InvalidValue, SignedDuration};
use super::{InvalidRequest, NotSupported};
use crate::control::update_subscription::{RETRY_DEFAULT, ack_deadline_default};
use crate::control::{CreateSubscription, DeadLetter, SubscriptionChange, UpdateSubscription};
use crate::filter::Filter;
use crate::subscription::RetryPolicy;

/// A subscription as a client writes it. Absent fields have the default of their type.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SubscriptionRequest {
    /// The full name; empty to be given one, which only a create may ask for.
    pub name: String,
    /// The full name of the topic.
    pub topic: String,
    /// The labels.
    pub labels: BTreeMap<String, String>,
    /// The ack deadline; zero for the default.
    pub ack_deadline_seconds: i32,
    /// Whether messages of one key arrive in order.
    pub enable_message_ordering: bool,
    /// Whether leases and acks are exactly-once.
    pub enable_exactly_once_delivery: bool,
    /// Which messages are wanted; empty for all.
    pub filter: String,
    /// Where messages go that failed too often.
    pub dead_letter_policy: Option<DeadLetterRequest>,
    /// How long a failed message waits.
    pub retry_policy: Option<RetryRequest>,
    /// The policy, if there is one, and in it how long the subscription lives unused, if not for
    /// ever.
    pub expiration_policy: Option<Option<SignedDuration>>,
    /// How long unacknowledged messages are kept.
    pub message_retention_duration: Option<SignedDuration>,
    /// Whether acknowledged messages are kept too.
    pub retain_acked_messages: bool,
    /// Whether there is a push endpoint, or anything else set in the push configuration.
    pub push_config: bool,
    /// Whether there is a configuration of an export to BigQuery.
    pub bigquery_config: bool,
    /// Whether there is a configuration of an export to Cloud Storage.
    pub cloud_storage_config: bool,
    /// Whether there is a configuration of an export to Bigtable.
    pub bigtable_config: bool,
    /// Whether there are message transforms.
    pub message_transforms: bool,
    /// Whether there are tags.
    pub tags: bool,
    /// Whether it shall be detached from its topic, which a create can't do.
    pub detached: bool,
}

/// A dead-letter policy as a client writes it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeadLetterRequest {
    /// The full name of the topic.
    pub dead_letter_topic: String,
    /// Failed deliveries before a message goes there; zero for the default.
    pub max_delivery_attempts: i32,
}

/// A retry policy as a client writes it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RetryRequest {
    /// The wait after the first failure.
    pub minimum_backoff: Option<SignedDuration>,
    /// The longest wait.
    pub maximum_backoff: Option<SignedDuration>,
}

/// A field that an update may name. Whole policies come before their parts, and exactly-once
/// before the ack deadline, whose default depends on it: updates go through them in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Field {
    Labels,
    EnableExactlyOnceDelivery,
    AckDeadlineSeconds,
    MessageRetentionDuration,
    ExpirationPolicy,
    DeadLetterPolicy,
    DeadLetterTopic,
    MaxDeliveryAttempts,
    RetryPolicy,
    MinimumBackoff,
    MaximumBackoff,
    /// One that only a later release serves.
    Later(Later),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Later {
    PushConfig,
    BigqueryConfig,
    CloudStorageConfig,
    BigtableConfig,
    RetainAckedMessages,
    MessageTransforms,
    Tags,
}

impl SubscriptionRequest {
    /// The command that creates the subscription.
    ///
    /// # Errors
    /// [`InvalidRequest`] when a field is wrong, or not supported.
    pub fn create(&self) -> Result<CreateSubscription, InvalidRequest> {
        let name = match self.name.as_str() {
            "" => None,
            name => Some(SubscriptionName::parse(name)?),
        };
        let topic = TopicName::parse(&self.topic)?;
        self.check_targets()?;
        if self.detached {
            return Err(InvalidValue::Detached.into());
        }
        Filter::parse(&self.filter)?;
        let ack_deadline_default = ack_deadline_default(self.enable_exactly_once_delivery);
        let create = CreateSubscription {
            name,
            topic,
            labels: value::labels(&self.labels)?,
            ordered: self.enable_message_ordering,
            exactly_once: self.enable_exactly_once_delivery,
            ack_deadline: self.ack_deadline()?.unwrap_or(ack_deadline_default),
            filter: self.filter.clone(),
            dead_letter: self.dead_letter()?,
            retry: self.retry()?,
            message_retention: self.message_retention()?,
            expiration_ttl: self.expiration_ttl()?,
        };
        for field in Later::ALL {
            self.refuse(field)?;
        }
        Ok(create)
    }

    /// The command that sets the fields of `mask` to their values here. Other fields don't count.
    ///
    /// # Errors
    /// [`InvalidRequest`] when the mask or a field that it names is wrong, or not supported.
    pub fn update(&self, mask: &[String]) -> Result<UpdateSubscription, InvalidRequest> {
        let name = SubscriptionName::parse(&self.name)?;
        let mut changes = Vec::new();
        for field in mask::fields("Subscription", mask, read_path)? {
            changes.extend(self.change(field)?);
        }
        Ok(UpdateSubscription { name, changes })
    }

    fn change(&self, field: Field) -> Result<Option<SubscriptionChange>, InvalidRequest> {
        Ok(Some(match field {
            Field::Labels => SubscriptionChange::Labels(value::labels(&self.labels)?),
            Field::EnableExactlyOnceDelivery => {
                SubscriptionChange::ExactlyOnce(self.enable_exactly_once_delivery)
            }
            Field::AckDeadlineSeconds => SubscriptionChange::AckDeadline(self.ack_deadline()?),
            Field::MessageRetentionDuration => {
                SubscriptionChange::MessageRetention(self.message_retention()?)
            }
            Field::ExpirationPolicy => SubscriptionChange::ExpirationTtl(self.expiration_ttl()?),
            Field::DeadLetterPolicy => SubscriptionChange::DeadLetter(self.dead_letter()?),
            Field::DeadLetterTopic => {
                let policy = self.dead_letter_policy.clone().unwrap_or_default();
                SubscriptionChange::DeadLetterTopic(TopicName::parse(&policy.dead_letter_topic)?)
            }
            Field::MaxDeliveryAttempts => {
                let policy = self.dead_letter_policy.clone().unwrap_or_default();
                SubscriptionChange::DeadLetterAttempts(policy.attempts_max()?)
            }
            Field::RetryPolicy => SubscriptionChange::Retry(self.retry()?),
            Field::MinimumBackoff => {
                SubscriptionChange::MinimumBackoff(self.retry_policy.unwrap_or_default().minimum()?)
            }
            Field::MaximumBackoff => {
                SubscriptionChange::MaximumBackoff(self.retry_policy.unwrap_or_default().maximum()?)
            }
            Field::Later(field) => {
                self.refuse(field)?;
                return Ok(None);
            }
        }))
    }

    fn ack_deadline(&self) -> Result<Option<Duration>, InvalidValue> {
        let allowed = ACK_DEADLINE_SECONDS_MIN..=ACK_DEADLINE_SECONDS_MAX;
        match u32::try_from(self.ack_deadline_seconds) {
            Ok(0) => Ok(None),
            Ok(seconds) if allowed.contains(&seconds) => {
                Ok(Some(Duration::from_secs(u64::from(seconds))))
            }
            _ => Err(InvalidValue::OutOfRange {
                field: "ack_deadline_seconds",
                given: self.ack_deadline_seconds.to_string(),
                allowed: format!("0, or from {} to {}", allowed.start(), allowed.end()),
            }),
        }
    }

    /// Only the default is served so far; it may be spelled out, as a client does that writes
    /// back what it has read.
    fn message_retention(&self) -> Result<Duration, InvalidRequest> {
        let field = "message_retention_duration";
        let Some(given) = self.message_retention_duration else {
            return Ok(MESSAGE_RETENTION_DEFAULT);
        };
        match given.within(field, MESSAGE_RETENTION_MIN, MESSAGE_RETENTION_MAX)? {
            MESSAGE_RETENTION_DEFAULT => Ok(MESSAGE_RETENTION_DEFAULT),
            _ => Err(not_supported(field)),
        }
    }

    /// Nothing expires so far. So "never" is kept to the letter, and the default may be spelled
    /// out, as a client does that writes back what it has read; any other time would be a lie.
    fn expiration_ttl(&self) -> Result<Option<Duration>, InvalidRequest> {
        match self.expiration_policy {
            None => Ok(Some(EXPIRATION_TTL_DEFAULT)),
            Some(None) => Ok(None),
            Some(Some(ttl)) => {
                let field = "expiration_policy.ttl";
                match ttl.within(field, EXPIRATION_TTL_MIN, Duration::MAX)? {
                    EXPIRATION_TTL_DEFAULT => Ok(Some(EXPIRATION_TTL_DEFAULT)),
                    _ => Err(not_supported(field)),
                }
            }
        }
    }

    fn dead_letter(&self) -> Result<Option<DeadLetter>, InvalidRequest> {
        let Some(policy) = &self.dead_letter_policy else {
            return Ok(None);
        };
        Ok(Some(DeadLetter {
            topic: TopicName::parse(&policy.dead_letter_topic)?,
            attempts_max: policy.attempts_max()?,
        }))
    }

    fn retry(&self) -> Result<Option<RetryPolicy>, InvalidValue> {
        let Some(policy) = self.retry_policy else {
            return Ok(None);
        };
        let (minimum, maximum) = (policy.minimum()?, policy.maximum()?);
        match minimum <= maximum {
            true => Ok(Some(RetryPolicy { minimum, maximum })),
            false => Err(InvalidValue::BackoffsCrossed { minimum, maximum }),
        }
    }

    fn check_targets(&self) -> Result<(), InvalidValue> {
        let targets = [
            self.push_config,
            self.bigquery_config,
            self.cloud_storage_config,
            self.bigtable_config,
        ];
        match targets.iter().filter(|given| **given).count() {
            0 | 1 => Ok(()),
            _ => Err(InvalidValue::ManyTargets),
        }
    }

    fn refuse(&self, field: Later) -> Result<(), InvalidRequest> {
        let (name, given) = match field {
            Later::PushConfig => ("push_config", self.push_config),
            Later::BigqueryConfig => ("bigquery_config", self.bigquery_config),
            Later::CloudStorageConfig => ("cloud_storage_config", self.cloud_storage_config),
            Later::BigtableConfig => ("bigtable_config", self.bigtable_config),
            Later::RetainAckedMessages => ("retain_acked_messages", self.retain_acked_messages),
            Later::MessageTransforms => ("message_transforms", self.message_transforms),
            Later::Tags => ("tags", self.tags),
        };
        match given {
            true => Err(not_supported(name)),
            false => Ok(()),
        }
    }
}

impl DeadLetterRequest {
    fn attempts_max(&self) -> Result<u32, InvalidValue> {
        let allowed = DELIVERY_ATTEMPTS_MIN..=DELIVERY_ATTEMPTS_MAX;
        match u32::try_from(self.max_delivery_attempts) {
            Ok(0) => Ok(DELIVERY_ATTEMPTS_DEFAULT),
            Ok(attempts) if allowed.contains(&attempts) => Ok(attempts),
            _ => Err(InvalidValue::OutOfRange {
                field: "dead_letter_policy.max_delivery_attempts",
                given: self.max_delivery_attempts.to_string(),
                allowed: format!("0, or from {} to {}", allowed.start(), allowed.end()),
            }),
        }
    }
}

impl RetryRequest {
    fn minimum(&self) -> Result<Duration, InvalidValue> {
        let field = "retry_policy.minimum_backoff";
        self.minimum_backoff
            .map_or(Ok(RETRY_DEFAULT.minimum), |given| {
                given.within(field, Duration::ZERO, BACKOFF_MAX)
            })
    }

    fn maximum(&self) -> Result<Duration, InvalidValue> {
        let field = "retry_policy.maximum_backoff";
        self.maximum_backoff
            .map_or(Ok(RETRY_DEFAULT.maximum), |given| {
                given.within(field, Duration::ZERO, BACKOFF_MAX)
            })
    }
}

impl Later {
    const ALL: [Later; 7] = [
        Later::PushConfig,
        Later::BigqueryConfig,
        Later::CloudStorageConfig,
        Later::BigtableConfig,
        Later::RetainAckedMessages,
        Later::MessageTransforms,
        Later::Tags,
    ];
}

fn not_supported(field: &'static str) -> InvalidRequest {
    let resource = "subscription";
    NotSupported { resource, field }.into()
}

fn read_path(path: &str) -> Path<Field> {
    // A part of what a later release serves is refused like the whole.
    let whole = path.split('.').next().unwrap_or(path);
    Path::Mutable(match path {
        "labels" => Field::Labels,
        "enable_exactly_once_delivery" => Field::EnableExactlyOnceDelivery,
        "ack_deadline_seconds" => Field::AckDeadlineSeconds,
        "message_retention_duration" => Field::MessageRetentionDuration,
        "expiration_policy" | "expiration_policy.ttl" => Field::ExpirationPolicy,
        "dead_letter_policy" => Field::DeadLetterPolicy,
        "dead_letter_policy.dead_letter_topic" => Field::DeadLetterTopic,
        "dead_letter_policy.max_delivery_attempts" => Field::MaxDeliveryAttempts,
        "retry_policy" => Field::RetryPolicy,
        "retry_policy.minimum_backoff" => Field::MinimumBackoff,
        "retry_policy.maximum_backoff" => Field::MaximumBackoff,
        "retain_acked_messages" => Field::Later(Later::RetainAckedMessages),
        "message_transforms" => Field::Later(Later::MessageTransforms),
        "name"
        | "topic"
        | "filter"
        | "enable_message_ordering"
        | "detached"
        | "tags"
        | "state"
        | "topic_message_retention_duration"
        | "analytics_hub_subscription_info" => {
            return Path::Immutable;
        }
        _ => match whole {
            "push_config" => Field::Later(Later::PushConfig),
            "bigquery_config" => Field::Later(Later::BigqueryConfig),
            "cloud_storage_config" => Field::Later(Later::CloudStorageConfig),
            "bigtable_config" => Field::Later(Later::BigtableConfig),
            _ => return Path::Unknown,
        },
    })
}

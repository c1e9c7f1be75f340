//! Subscriptions.

use engine::control::Subscription;
use engine::control::request::{DeadLetterRequest, RetryRequest, SubscriptionRequest};
use engine::subscription::{DeadLetterPolicy, RetryPolicy};
use model::name::DELETED_TOPIC;
use proto::pubsub;

use super::{from_duration, to_duration};

/// What a client writes about a subscription. Fields that only the server sets are ignored.
pub(crate) fn from_subscription(subscription: pubsub::Subscription) -> SubscriptionRequest {
    SubscriptionRequest {
        name: subscription.name,
        topic: subscription.topic,
        labels: subscription.labels,
        ack_deadline_seconds: subscription.ack_deadline_seconds,
        enable_message_ordering: subscription.enable_message_ordering,
        enable_exactly_once_delivery: subscription.enable_exactly_once_delivery,
        filter: subscription.filter,
        dead_letter_policy: subscription.dead_letter_policy.map(from_dead_letter),
        retry_policy: subscription.retry_policy.map(from_retry),
        expiration_policy: subscription
            .expiration_policy
            .map(|policy| policy.ttl.map(from_duration)),
        message_retention_duration: subscription.message_retention_duration.map(from_duration),
        retain_acked_messages: subscription.retain_acked_messages,
        // A present but empty push_config is what Get answers for a subscription that is pulled.
        push_config: subscription
            .push_config
            .is_some_and(|push| push != pubsub::PushConfig::default()),
        bigquery_config: subscription.bigquery_config.is_some(),
        cloud_storage_config: subscription.cloud_storage_config.is_some(),
        bigtable_config: subscription.bigtable_config.is_some(),
        message_transforms: !subscription.message_transforms.is_empty(),
        tags: !subscription.tags.is_empty(),
        detached: subscription.detached,
    }
}

/// What a client reads of a subscription.
pub(crate) fn to_subscription(subscription: Subscription) -> pubsub::Subscription {
    let settings = subscription.settings;
    let topic = subscription.topic_name.map(|name| name.to_string());
    pubsub::Subscription {
        name: subscription.name.to_string(),
        topic: topic.unwrap_or_else(|| DELETED_TOPIC.to_owned()),
        push_config: Some(pubsub::PushConfig::default()),
        ack_deadline_seconds: i32::try_from(settings.ack_deadline.as_secs())
            .expect("ten minutes at most"),
        message_retention_duration: Some(to_duration(subscription.message_retention)),
        labels: subscription.labels,
        enable_message_ordering: settings.ordered,
        expiration_policy: Some(pubsub::ExpirationPolicy {
            ttl: subscription.expiration_ttl.map(to_duration),
        }),
        filter: settings.filter,
        dead_letter_policy: settings.dead_letter.map(to_dead_letter),
        retry_policy: settings.retry.map(to_retry),
        detached: subscription.detached,
        enable_exactly_once_delivery: settings.exactly_once,
        state: pubsub::subscription::State::Active.into(),
        ..pubsub::Subscription::default()
    }
}

fn from_dead_letter(policy: pubsub::DeadLetterPolicy) -> DeadLetterRequest {
    DeadLetterRequest {
        dead_letter_topic: policy.dead_letter_topic,
        max_delivery_attempts: policy.max_delivery_attempts,
    }
}

fn from_retry(policy: pubsub::RetryPolicy) -> RetryRequest {
    RetryRequest {
        minimum_backoff: policy.minimum_backoff.map(from_duration),
        maximum_backoff: policy.maximum_backoff.map(from_duration),
    }
}

fn to_dead_letter(policy: DeadLetterPolicy) -> pubsub::DeadLetterPolicy {
    pubsub::DeadLetterPolicy {
        dead_letter_topic: policy.topic.to_string(),
        max_delivery_attempts: i32::try_from(policy.attempts_max).expect("a hundred at most"),
    }
}

fn to_retry(policy: RetryPolicy) -> pubsub::RetryPolicy {
    pubsub::RetryPolicy {
        minimum_backoff: Some(to_duration(policy.minimum)),
        maximum_backoff: Some(to_duration(policy.maximum)),
    }
}

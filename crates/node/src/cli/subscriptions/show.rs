//! How a subscription is printed.

use proto::pubsub::{DeadLetterPolicy, RetryPolicy, Subscription, subscription};
use serde_json::{Value, json};

use crate::cli::fields::Fields;
use crate::cli::output::Show;
use crate::cli::resource::pairs;

impl Show for Subscription {
    const COLUMNS: &'static [&'static str] = &[
        "NAME",
        "TOPIC",
        "ACK_DEADLINE",
        "ORDERING",
        "EXACTLY_ONCE",
        "FILTER",
        "DEAD_LETTER",
        "RETRY",
        "DETACHED",
        "LABELS",
    ];

    fn cells(&self) -> Vec<String> {
        vec![
            self.name.clone(),
            self.topic.clone(),
            format!("{}s", self.ack_deadline_seconds),
            yes(self.enable_message_ordering),
            yes(self.enable_exactly_once_delivery),
            self.filter.clone(),
            self.dead_letter_policy
                .as_ref()
                .map(dead_letter_cell)
                .unwrap_or_default(),
            self.retry_policy
                .as_ref()
                .map(retry_cell)
                .unwrap_or_default(),
            yes(self.detached),
            pairs(&self.labels),
        ]
    }

    fn json(&self) -> Value {
        let mut fields = Fields::default();
        fields.text("name", &self.name);
        fields.text("topic", &self.topic);
        fields.put("pushConfig", json!({}));
        fields.put("ackDeadlineSeconds", json!(self.ack_deadline_seconds));
        fields.duration(
            "messageRetentionDuration",
            self.message_retention_duration.as_ref(),
        );
        fields.map("labels", &self.labels);
        fields.flag("enableMessageOrdering", self.enable_message_ordering);
        if let Some(policy) = &self.expiration_policy {
            let mut inner = Fields::default();
            inner.duration("ttl", policy.ttl.as_ref());
            fields.put("expirationPolicy", inner.into());
        }
        fields.text("filter", &self.filter);
        if let Some(policy) = &self.dead_letter_policy {
            fields.put("deadLetterPolicy", dead_letter_json(policy));
        }
        if let Some(policy) = &self.retry_policy {
            fields.put("retryPolicy", retry_json(policy));
        }
        fields.flag("detached", self.detached);
        fields.flag(
            "enableExactlyOnceDelivery",
            self.enable_exactly_once_delivery,
        );
        if let Ok(state) = subscription::State::try_from(self.state) {
            fields.text("state", state.as_str_name());
        }
        fields.into()
    }
}

fn yes(value: bool) -> String {
    if value { "yes" } else { "" }.to_owned()
}

fn dead_letter_cell(policy: &DeadLetterPolicy) -> String {
    format!(
        "{} after {}",
        policy.dead_letter_topic, policy.max_delivery_attempts
    )
}

fn dead_letter_json(policy: &DeadLetterPolicy) -> Value {
    json!({
        "deadLetterTopic": policy.dead_letter_topic,
        "maxDeliveryAttempts": policy.max_delivery_attempts,
    })
}

fn retry_cell(policy: &RetryPolicy) -> String {
    let text = |delay: Option<prost_types::Duration>| delay.unwrap_or_default().to_string();
    format!(
        "{} to {}",
        text(policy.minimum_backoff),
        text(policy.maximum_backoff)
    )
}

fn retry_json(policy: &RetryPolicy) -> Value {
    let mut fields = Fields::default();
    fields.duration("minimumBackoff", policy.minimum_backoff.as_ref());
    fields.duration("maximumBackoff", policy.maximum_backoff.as_ref());
    fields.into()
}

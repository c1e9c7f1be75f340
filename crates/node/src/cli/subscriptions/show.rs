//! How a subscription is printed.

use proto::pubsub::{DeadLetterPolicy, RetryPolicy, Subscription};
use serde_json::{Map, Value, json};

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
        let mut fields = Map::new();
        let mut put = |name: &str, value: Value| fields.insert(name.to_owned(), value);
        put("name", json!(self.name));
        put("topic", json!(self.topic));
        put("ackDeadlineSeconds", json!(self.ack_deadline_seconds));
        put("enableMessageOrdering", json!(self.enable_message_ordering));
        put(
            "enableExactlyOnceDelivery",
            json!(self.enable_exactly_once_delivery),
        );
        put("filter", json!(self.filter));
        put("detached", json!(self.detached));
        put("labels", json!(self.labels));
        if let Some(policy) = &self.dead_letter_policy {
            put("deadLetterPolicy", dead_letter_json(policy));
        }
        if let Some(policy) = &self.retry_policy {
            put("retryPolicy", retry_json(policy));
        }
        Value::Object(fields)
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
    let text = |delay: Option<prost_types::Duration>| delay.map(|delay| delay.to_string());
    json!({
        "minimumBackoff": text(policy.minimum_backoff),
        "maximumBackoff": text(policy.maximum_backoff),
    })
}

//! Which subscriptions a topic has: an index of [`super::subscription`].

use model::{Incarnation, SubscriptionName};
use serde::{Deserialize, Serialize};

use crate::table::{Row, RowKey};

/// By topic and the name of the subscription.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TopicSubscriptionKey {
    /// The topic's incarnation.
    pub topic: Incarnation,
    subscription: String,
}

/// Stays when the topic is deleted, and goes with the subscription.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TopicSubscription {
    /// The subscription.
    pub name: SubscriptionName,
    /// Whether it was detached.
    pub detached: bool,
}

impl TopicSubscriptionKey {
    /// The key of one subscription.
    #[must_use]
    pub fn new(topic: Incarnation, subscription: &SubscriptionName) -> Self {
        TopicSubscriptionKey {
            topic,
            subscription: subscription.as_str().to_owned(),
        }
    }

    /// The bounds of a topic's subscriptions whose names come after `name`; all for an empty one.
    #[must_use]
    pub fn after(topic: Incarnation, name: &str) -> (Self, Self) {
        let from = TopicSubscriptionKey {
            topic,
            subscription: format!("{name}\0"),
        };
        let to = TopicSubscriptionKey {
            topic: Incarnation(topic.0 + 1),
            subscription: String::new(),
        };
        (from, to)
    }
}

impl Row for TopicSubscription {
    const TABLE: u8 = 67;
    type Key = TopicSubscriptionKey;
}

impl RowKey for TopicSubscriptionKey {
    fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.topic.0.to_be_bytes());
        out.extend_from_slice(self.subscription.as_bytes());
    }

    fn read(bytes: &[u8]) -> Option<Self> {
        let (topic, name) = bytes.split_first_chunk::<8>()?;
        Some(TopicSubscriptionKey {
            topic: Incarnation(u64::from_be_bytes(*topic)),
            subscription: String::from_utf8(name.to_vec()).ok()?,
        })
    }
}

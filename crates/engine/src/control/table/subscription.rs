//! A subscription, by name.

use std::time::Duration;

use model::{Incarnation, SubscriptionName, TopicName};
use serde::{Deserialize, Serialize};

use super::NameKey;
use super::topic::Labels;
use crate::shard::{Attach, Detach};
use crate::subscription::SubscriptionSettings;
use crate::table::Row;

/// A subscription as the catalogue has it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Subscription {
    /// Its name.
    pub name: SubscriptionName,
    /// Which life of the name this is.
    pub incarnation: Incarnation,
    /// The topic whose messages it receives. It stays when the topic is deleted: the backlog is
    /// still there, under this incarnation.
    pub topic: Incarnation,
    /// The name of that topic, until it is deleted. Then clients see [`model::name::DELETED_TOPIC`].
    pub topic_name: Option<TopicName>,
    /// Which command changed it last; grows with each.
    pub version: u64,
    /// Its labels.
    pub labels: Labels,
    /// What shards must know of it.
    pub settings: SubscriptionSettings,
    /// How long unacknowledged messages are kept.
    pub message_retention: Duration,
    /// How long it lives unused; `None` is for ever.
    pub expiration_ttl: Option<Duration>,
    /// Whether it was detached: it has no backlog and never gets one again.
    pub detached: bool,
}

impl Subscription {
    /// What each shard must log so that it serves the subscription as it is now.
    #[must_use]
    pub fn attach(&self) -> Attach {
        Attach {
            topic: self.topic,
            subscription: self.incarnation,
            version: self.version,
            settings: self.settings.clone(),
        }
    }

    /// What each shard must log so that it drops the subscription's backlog.
    #[must_use]
    pub fn detach(&self) -> Detach {
        Detach {
            topic: self.topic,
            subscription: self.incarnation,
        }
    }
}

impl Row for Subscription {
    const TABLE: u8 = 66;
    type Key = NameKey;
}

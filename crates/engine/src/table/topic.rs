//! A topic as a shard knows it: what a publish must know without a look at every subscription.

use model::Incarnation;
use serde::{Deserialize, Serialize};

use super::{Row, fixed_key};

/// By topic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TopicKey {
    /// The topic's incarnation.
    pub topic: Incarnation,
}

/// A topic without a row is open and has no attachment. The row of a deleted topic stays: an
/// incarnation is never used again, and a late publish must find it closed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Topic {
    /// Whether the topic was deleted: it takes no more messages.
    pub closed: bool,
    /// How many rows of [`super::attachment`] it has.
    pub attachments: u32,
}

impl Row for Topic {
    const TABLE: u8 = 12;
    type Key = TopicKey;
}

fixed_key!(TopicKey { topic: number });

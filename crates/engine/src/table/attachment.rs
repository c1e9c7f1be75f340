//! A subscription as a shard knows it.

use model::{Incarnation, MessageId};
use serde::{Deserialize, Serialize};

use super::{Row, fixed_key};
use crate::subscription::SubscriptionSettings;

/// By topic, so that a publish finds who wants it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct AttachmentKey {
    /// The topic's incarnation.
    pub topic: Incarnation,
    /// The subscription's incarnation.
    pub subscription: Incarnation,
}

/// A subscription takes part in a topic's messages on this shard from `after` on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attachment {
    /// The newest message that is not for the subscription: it was published before.
    pub after: MessageId,
    /// The version of the settings; an older one never replaces a newer one.
    pub version: u64,
    /// How the subscription wants to be served.
    pub settings: SubscriptionSettings,
}

impl Row for Attachment {
    const TABLE: u8 = 2;
    type Key = AttachmentKey;
}

fixed_key!(AttachmentKey {
    topic: number,
    subscription: number
});

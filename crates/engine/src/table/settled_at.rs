//! The rows of [`super::settled`] by time, so that the oldest are found and dropped.

use model::{Incarnation, MessageId, Timestamp};
use serde::{Deserialize, Serialize};

use super::{Row, fixed_key};

/// By time, then as in [`super::settled::SettledKey`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SettledAtKey {
    /// When the message was settled.
    pub at: Timestamp,
    /// The subscription's incarnation.
    pub subscription: Incarnation,
    /// The message.
    pub message: MessageId,
}

/// The key says all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SettledAt;

impl Row for SettledAt {
    const TABLE: u8 = 10;
    type Key = SettledAtKey;
}

fixed_key!(SettledAtKey {
    at: number,
    subscription: number,
    message: number
});

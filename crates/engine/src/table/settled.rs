//! Acks of exactly-once subscriptions that may be repeated: the answer stays OK for a while.

use model::{Generation, Incarnation, MessageId, Timestamp};
use serde::{Deserialize, Serialize};

use super::{Row, fixed_key};

/// By subscription and message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SettledKey {
    /// The subscription's incarnation.
    pub subscription: Incarnation,
    /// The message.
    pub message: MessageId,
}

/// The ack that settled the message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Settled {
    /// The delivery that was acknowledged.
    pub generation: Generation,
    /// When.
    pub at: Timestamp,
}

impl Row for Settled {
    const TABLE: u8 = 9;
    type Key = SettledKey;
}

fixed_key!(SettledKey {
    subscription: number,
    message: number
});

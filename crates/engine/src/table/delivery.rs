//! What must outlive a leader of one message's deliveries: the lease of an exactly-once
//! subscription, and the attempts where a dead-letter policy counts them.

use std::time::Duration;

use model::{Generation, Incarnation, MessageId, SessionId};
use serde::{Deserialize, Serialize};

use super::{Row, fixed_key};

/// By subscription and message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct DeliveryKey {
    /// The subscription's incarnation.
    pub subscription: Incarnation,
    /// The message.
    pub message: MessageId,
}

/// Goes when the message is settled.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Delivery {
    /// Failed deliveries so far: nacks and expiries.
    pub attempts: u32,
    /// The live lease, on exactly-once subscriptions.
    pub lease: Option<Lease>,
}

/// A logged lease. It ends by a command only; a new leader restarts its whole duration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lease {
    /// The delivery that holds it.
    pub generation: Generation,
    /// How long it runs from the moment it was last granted.
    pub duration: Duration,
    /// Whether the client has ever extended it: it has then surely received the message.
    pub extended: bool,
    /// The stream that it was granted for, by the number of its first opening. `None` for a Pull.
    pub stream: Option<SessionId>,
}

impl Row for Delivery {
    const TABLE: u8 = 8;
    type Key = DeliveryKey;
}

fixed_key!(DeliveryKey {
    subscription: number,
    message: number
});

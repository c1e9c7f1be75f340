//! A lane: the position of one ordered subscription in one keyed strand.

use model::{Generation, Incarnation, KeyHash, MessageId};
use serde::{Deserialize, Serialize};

use super::{Row, fixed_key};

/// By strand and subscription, so that a strand goes with all of its lanes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LaneKey {
    /// The topic's incarnation.
    pub topic: Incarnation,
    /// The strand.
    pub strand: KeyHash,
    /// The subscription's incarnation.
    pub subscription: Incarnation,
}

/// What was acknowledged of the strand. A lane without a row stands at its attachment's `after`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lane {
    /// Every message of the strand up to this id is settled.
    pub position: MessageId,
    /// Tentative marks: ranges of acknowledged messages behind an unacknowledged one, in order,
    /// apart from each other, both ends included. Empty on exactly-once subscriptions, where acks
    /// come in order.
    pub marks: Vec<(MessageId, MessageId)>,
    /// The lane was moved back: see [`Rewound`].
    pub rewound: Option<Rewound>,
}

/// No ack of a message from `from` on counts when its delivery is older than `generation`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rewound {
    /// The first message that is sent again.
    pub from: MessageId,
    /// Deliveries from this one on count.
    pub generation: Generation,
}

impl Row for Lane {
    const TABLE: u8 = 6;
    type Key = LaneKey;
}

fixed_key!(LaneKey {
    topic: number,
    strand: hash,
    subscription: number
});

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
    /// apart from each other and from the position, both ends included. On exactly-once
    /// subscriptions acks come in order, and only what the filter does not want leaves marks.
    pub marks: Vec<(MessageId, MessageId)>,
    /// How the lane was moved back: see [`Rewound`]. Later ones have both a later message and a
    /// later delivery. One record would not do: when message 9 is nacked, the deliveries of 7 and 8
    /// that an earlier rewind let through must go on counting.
    pub rewound: Vec<Rewound>,
}

/// No ack of a message from `from` on counts when its delivery is older than `generation`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rewound {
    /// The first message that is sent again.
    pub from: MessageId,
    /// Deliveries from this one on count.
    pub generation: Generation,
}

impl Lane {
    /// Whether a message is settled or marked.
    #[must_use]
    pub fn covers(&self, message: MessageId) -> bool {
        message <= self.position || self.mark_of(message).is_some()
    }

    /// The range of marks that has the message.
    #[must_use]
    pub fn mark_of(&self, message: MessageId) -> Option<(MessageId, MessageId)> {
        let after = self.marks.partition_point(|(start, _)| *start <= message);
        let before = after.checked_sub(1).map(|at| self.marks[at]);
        before.filter(|(_, end)| message <= *end)
    }
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

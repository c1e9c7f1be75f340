//! Copies of strands that moves bring, before they are opened.

use model::{Epoch, Incarnation, KeyHash, MessageId, Term, Timestamp};
use serde::{Deserialize, Serialize};

use super::delivery::Delivery;
use super::holes::Holes;
use super::lane::Lane;
use super::run::Run;
use super::{Row, fixed_key};
use crate::registry::MoveId;

/// By strand, and the epoch at which its source is sealed: of one sealed strand there is one copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct StagedKey {
    /// The topic's incarnation.
    pub topic: Incarnation,
    /// The strand.
    pub strand: KeyHash,
    /// The epoch at which the source has sealed it.
    pub epoch: Epoch,
}

/// A copy, as far as it has come.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Staged {
    /// The move that it belongs to. The pin names it.
    pub id: MoveId,
    /// The term of the source's leader that sends it: another one begins anew.
    pub term: Term,
    /// How many items have come; they stand in [`StagedItem`].
    pub items: u64,
    /// What the whole of it is like. None until it is whole.
    pub whole: Option<CopyHead>,
}

/// What a copy says of the strand as a whole. It comes last, so that a copy without it is not whole.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CopyHead {
    /// How many items the copy has.
    pub items: u64,
    /// As in [`super::strand::Strand::last`].
    pub last: MessageId,
    /// As in [`super::strand::Strand::published`].
    pub published: Timestamp,
    /// The subscriptions that the source knew. One that the copy lacks wants nothing of it.
    pub subscriptions: Vec<Incarnation>,
}

/// By copy, and the item's place in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct StagedItemKey {
    /// The topic's incarnation.
    pub topic: Incarnation,
    /// The strand.
    pub strand: KeyHash,
    /// The epoch at which the source has sealed it.
    pub epoch: Epoch,
    /// From zero.
    pub place: Place,
}

/// The place of an item in its copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Place(pub u64);

/// One row of a strand on its way to another shard.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum StagedItem {
    /// A run. Where its payload is, and how many subscriptions wait for it, is this shard's affair.
    Run {
        /// The id of its first message.
        first: MessageId,
        /// The run.
        run: Run,
    },
    /// How far an ordered subscription is.
    Lane {
        /// The subscription.
        subscription: Incarnation,
        /// Its lane, also where the source had no row of it.
        lane: Lane,
    },
    /// What a subscription without order has settled of one run.
    Holes {
        /// The subscription.
        subscription: Incarnation,
        /// The id of the run's first message.
        first: MessageId,
        /// Also where the source had no row of it.
        holes: Holes,
    },
    /// A logged lease, and attempts.
    Delivery {
        /// The subscription.
        subscription: Incarnation,
        /// The message.
        message: MessageId,
        /// What is logged of it.
        delivery: Delivery,
    },
}

impl From<u64> for Place {
    fn from(number: u64) -> Self {
        Place(number)
    }
}

impl Row for Staged {
    const TABLE: u8 = 16;
    type Key = StagedKey;
}

impl Row for StagedItem {
    const TABLE: u8 = 17;
    type Key = StagedItemKey;
}

fixed_key!(StagedKey {
    topic: number,
    strand: hash,
    epoch: number
});
fixed_key!(StagedItemKey {
    topic: number,
    strand: hash,
    epoch: number,
    place: number
});

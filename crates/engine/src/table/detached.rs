//! A subscription that takes no part any more, until what it left behind is cleaned up.

use model::{Incarnation, KeyHash, MessageId};
use serde::{Deserialize, Serialize};

use super::{Row, fixed_key};

/// By topic, as in [`super::attachment::AttachmentKey`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct DetachedKey {
    /// The topic's incarnation.
    pub topic: Incarnation,
    /// The subscription's incarnation.
    pub subscription: Incarnation,
}

/// Which runs waited for the subscription, and how far the clean-up came. The row goes with its
/// last step, so a new leader finds here what its predecessor left unfinished.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Detached {
    /// As in [`super::attachment::Attachment::after`].
    pub after: MessageId,
    /// The newest message when the subscription was detached: later ones never waited for it.
    pub until: MessageId,
    /// As in [`crate::subscription::SubscriptionSettings::ordered`].
    pub ordered: bool,
    /// What is to be done next.
    pub next: Step,
}

/// The clean-up goes through these in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Step {
    /// Runs, from this one on, stop waiting.
    Runs(MessageId),
    /// Lanes go, from this strand on. Not before all runs: a lane's position says which waited.
    Lanes(KeyHash),
    /// Deliveries go.
    Deliveries,
}

impl Row for Detached {
    const TABLE: u8 = 13;
    type Key = DetachedKey;
}

fixed_key!(DetachedKey {
    topic: number,
    subscription: number
});

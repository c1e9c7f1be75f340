//! The runs of one strand, in order: the way back to a key that the topic's scan has passed.

use model::{Incarnation, KeyHash, MessageId};
use serde::{Deserialize, Serialize};

use super::{Row, fixed_key};

/// By strand and first id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct StrandRunKey {
    /// The topic's incarnation.
    pub topic: Incarnation,
    /// The strand.
    pub strand: KeyHash,
    /// The id of the run's first message.
    pub first: MessageId,
}

/// There is a run of the strand at that id; [`super::run::Run`] has the rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StrandRun {
    /// How many messages the run has.
    pub count: u32,
}

impl StrandRun {
    /// The id of the last message, for the run that begins at `first`.
    #[must_use]
    pub fn last(&self, first: MessageId) -> MessageId {
        first.plus(self.count - 1)
    }
}

impl Row for StrandRun {
    const TABLE: u8 = 4;
    type Key = StrandRunKey;
}

fixed_key!(StrandRunKey {
    topic: number,
    strand: hash,
    first: number
});

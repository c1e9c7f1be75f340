//! A strand: the sequence of one (topic, ordering key) in this shard.

use model::limits::STRAND_IDLE;
use model::{Epoch, Incarnation, KeyHash, MessageId, Timestamp};
use serde::{Deserialize, Serialize};

use super::{Row, fixed_key};

/// By topic and key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct StrandKey {
    /// The topic's incarnation.
    pub topic: Incarnation,
    /// The strand.
    pub strand: KeyHash,
}

/// A strand that this shard owns.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Strand {
    /// The epoch of the pin under which the strand is open; zero for messages without a key.
    pub epoch: Epoch,
    /// The newest message.
    pub last: MessageId,
    /// When the newest message was published.
    pub published: Timestamp,
    /// How many runs of the strand are stored.
    pub runs: u64,
    /// Whether the strand is sealed: nothing of it changes at this epoch any more. Why is in
    /// [`super::sealed`].
    pub sealed: bool,
}

impl Strand {
    /// Whether nothing of the strand is wanted any more, and nobody has published to it for long.
    #[must_use]
    pub fn is_idle(&self, time: Timestamp) -> bool {
        self.runs == 0 && self.published.plus(STRAND_IDLE) <= time
    }
}

impl Row for Strand {
    const TABLE: u8 = 5;
    type Key = StrandKey;
}

fixed_key!(StrandKey {
    topic: number,
    strand: hash
});

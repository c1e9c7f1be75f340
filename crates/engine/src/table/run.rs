//! A run: the messages of one publish request, which got consecutive ids.

use model::{Epoch, Incarnation, KeyHash, MessageId, Timestamp};
use serde::{Deserialize, Serialize};

use super::staged::StagedItem;
use super::{Row, fixed_key, read_row};
use crate::Fault;

/// By topic and first id, so that a scan reads a topic in publish order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RunKey {
    /// The topic's incarnation.
    pub topic: Incarnation,
    /// The id of the run's first message.
    pub first: MessageId,
}

/// Where the store keeps a run's payload: beside the log entry that published it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct PayloadAt {
    /// The term of the entry.
    pub term: u64,
    /// The index of the entry.
    pub index: u64,
    /// Which payload of the entry, from zero, over all its commands.
    pub number: u32,
}

/// A run that some subscription still needs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Run {
    /// The strand of the messages.
    pub strand: KeyHash,
    /// The epoch of the key's pin when they were published; zero for messages without a key.
    pub epoch: Epoch,
    /// How many messages; their ids count up from the first.
    pub count: u32,
    /// What they weigh together, in bytes.
    pub bytes: u64,
    /// When they were published; the same for all.
    pub published: Timestamp,
    /// Where the messages are.
    pub payload: PayloadAt,
    /// How many subscriptions have not finished the run. At zero it goes.
    pub waiting: u32,
}

impl Row for Run {
    const TABLE: u8 = 3;
    type Key = RunKey;
}

impl Run {
    /// The id of the last message, for the run that begins at `first`.
    #[must_use]
    pub fn last(&self, first: MessageId) -> MessageId {
        first.plus(self.count - 1)
    }

    /// Whether the messages have an ordering key.
    #[must_use]
    pub fn keyed(&self) -> bool {
        self.epoch != Epoch(0)
    }
}

/// The payload that a row refers to, for the two tables whose rows do. A checkpoint takes it along.
///
/// # Errors
/// [`Fault`] when the row does not decode.
pub fn referred_payload(key: &[u8], value: &[u8]) -> Result<Option<PayloadAt>, Fault> {
    match key.first() {
        Some(&Run::TABLE) => Ok(Some(read_row::<Run>(key, value)?.payload)),
        Some(&StagedItem::TABLE) => Ok(match read_row(key, value)? {
            StagedItem::Run { run, .. } => Some(run.payload),
            _ => None,
        }),
        _ => Ok(None),
    }
}

fixed_key!(RunKey {
    topic: number,
    first: number
});

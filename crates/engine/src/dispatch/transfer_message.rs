//! What the leaders of two shards tell each other about a key that moves, and what a registry group
//! says of its pins. Any of it may be lost, or
//! come late or twice: both sides work by their rows and say it again.

use bytes::Bytes;
use model::run::RunPayload;
use model::{Epoch, Term};
use serde::{Deserialize, Serialize};

use crate::registry::MoveId;
use crate::shard::{Opening, Stage};
use crate::table::staged::StagedKey;
use crate::table::strand::StrandKey;

/// The format of every message written by this program.
const FORMAT: u8 = 1;

/// One message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum TransferMessage {
    /// From the source: a part of the copy.
    Copy {
        /// The part; its payloads travel beside.
        part: Stage,
        /// The messages of its runs, as stored.
        payloads: Vec<Vec<u8>>,
    },
    /// From the target: so much of the copy is on its disks.
    Staged {
        /// The copy.
        copy: StagedKey,
        /// The move.
        id: MoveId,
        /// The term of the source's leader that sent it.
        term: Term,
        /// How many items have come.
        items: u64,
        /// Whether these are all.
        whole: bool,
    },
    /// From the source: the pin has moved, so the copy is to be opened.
    Activate {
        /// The copy.
        copy: StagedKey,
        /// The move.
        id: MoveId,
        /// The pin.
        opening: Opening,
    },
    /// From the target: the key is open here, so the strand that was sealed at this epoch is to go.
    Drop {
        /// The key.
        key: StrandKey,
        /// The epoch.
        epoch: Epoch,
    },
    /// From a registry group: these pins of the shard are old. They go if nothing of their keys is
    /// stored.
    OldPins {
        /// The keys, with the epochs of their pins; all of one group.
        pins: Vec<(StrandKey, Epoch)>,
    },
}

impl TransferMessage {
    /// The message, for another node.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        postcard::to_extend(self, vec![FORMAT]).expect("messages are plain data, which encodes")
    }

    /// Reads what [`TransferMessage::encode`] wrote; `None` for other bytes.
    #[must_use]
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let (_, rest) = bytes
            .split_first()
            .filter(|(format, _)| **format == FORMAT)?;
        match postcard::take_from_bytes(rest).ok()? {
            (message, []) => Some(message),
            _ => None,
        }
    }
}

/// A part with its payloads, as it goes into the log; `None` if they do not fit together.
pub(super) fn with_payloads(mut part: Stage, payloads: Vec<Vec<u8>>) -> Option<Stage> {
    if payloads.len() != part.payload_count() as usize {
        return None;
    }
    let payloads = payloads.into_iter().map(Bytes::from);
    let payloads = payloads.map(RunPayload::from_stored);
    part.payloads = payloads.collect::<Result<_, _>>().ok()?;
    Some(part)
}

//! The commands of a registry group and their answer.

use model::{Epoch, MessageId};
use serde::{Deserialize, Serialize};

use super::{Claim, MovePins, Pin, Release};

/// The format of every answer written by this program.
const FORMAT: u8 = 1;

/// A command in a registry group's log. One struct each. None names more keys than
/// [`model::limits::REGISTRY_KEYS_MAX`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Command {
    /// A shard wants to own keys.
    Claim(Claim),
    /// Pins go, because nothing is left of their keys.
    Release(Release),
    /// Pins are bound to other shards.
    Move(MovePins),
}

/// The answer to any command.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reply {
    /// For each key that the command names, in the same order: its pin now, if it has one.
    pub pins: Vec<Option<Pin>>,
    /// The newest epoch of the group. An answer says nothing of a strand that is open at a later
    /// one: it is older than that.
    pub as_of: Epoch,
    /// A shard that opens a strand of this group goes on above this id: messages of the key that
    /// it never heard of may have had ids up to it.
    pub id_floor: MessageId,
}

impl Reply {
    /// The answer, for another node.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        postcard::to_extend(self, vec![FORMAT]).expect("answers are plain data, which encodes")
    }

    /// Reads what [`Reply::encode`] wrote; `None` for other bytes.
    #[must_use]
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let (_, rest) = bytes
            .split_first()
            .filter(|(format, _)| **format == FORMAT)?;
        match postcard::take_from_bytes(rest).ok()? {
            (reply, []) => Some(reply),
            _ => None,
        }
    }
}

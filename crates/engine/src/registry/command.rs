//! The commands of a registry group and their answer.

use model::MessageId;
use serde::{Deserialize, Serialize};

use super::{Claim, MovePins, Pin, Release};

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
    /// A shard that opens a strand of this group goes on above this id: messages of the key that
    /// it never heard of may have had ids up to it.
    pub id_floor: MessageId,
}

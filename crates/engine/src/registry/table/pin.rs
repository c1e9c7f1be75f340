//! A pin: which shard owns the strand of a (topic, ordering key).

use model::{Epoch, ShardNumber, Term};
use serde::{Deserialize, Serialize};

use crate::table::Row;
use crate::table::strand::StrandKey;

/// By topic and key, as the strand in its shard. Goes by [`crate::registry::Release`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pin {
    /// The owner.
    pub shard: ShardNumber,
    /// Which writing of the pin this is: grows with each, over all pins of the group.
    pub epoch: Epoch,
    /// The epoch at which the owner got the key: by the first claim, or by a move. What is sealed
    /// at the owner since before then is of an earlier time, and never opens again.
    pub since: Epoch,
    /// The move that brought the key to its owner, if one did: the owner has a copy of the strand
    /// under this name, until it activates it.
    pub moved: Option<MoveId>,
}

/// Names one attempt to move a key. Never used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct MoveId {
    /// The shard that the key leaves.
    pub shard: ShardNumber,
    /// The term of the leader that began the move.
    pub term: Term,
    /// That leader's count of moves.
    pub number: u64,
}

impl Row for Pin {
    const TABLE: u8 = 129;
    type Key = StrandKey;
}

//! Strands that are sealed: each is work for the shard's leader.

use model::ShardNumber;
use serde::{Deserialize, Serialize};

use super::Row;
use super::strand::StrandKey;
use crate::registry::MoveId;

/// By strand; there exactly while [`super::strand::Strand::sealed`] says so. A table of their own
/// lets a new leader find them without reading all strands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sealed {
    /// What for.
    pub purpose: Purpose,
}

/// Why a strand is sealed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Purpose {
    /// Nobody uses the key: its pin goes, and then the strand.
    Release,
    /// The key moves: another shard gets a copy, then the pin, and then the strand goes.
    Move {
        /// Names the copy.
        id: MoveId,
        /// The other shard.
        to: ShardNumber,
    },
}

impl Row for Sealed {
    const TABLE: u8 = 15;
    type Key = StrandKey;
}

//! The nodes that may hold a catalogue lease, by id. One without a row is asleep: no change of the
//! catalogue waits for it, whoever leads the control group.
//!
//! Written by [`Awake`](crate::control::Awake), deleted by [`Asleep`](crate::control::Asleep).

use model::Boot;
use serde::{Deserialize, Serialize};

use super::node::NodeKey;
use crate::table::Row;

/// A node that may hold a catalogue lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AwakeNode {
    /// The only life of it that may: a lease ends with its process.
    pub boot: Boot,
}

impl Row for AwakeNode {
    const TABLE: u8 = 72;
    type Key = NodeKey;
}

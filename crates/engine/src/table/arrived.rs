//! Strands that a move has brought: they have messages with ids of other shards.

use serde::{Deserialize, Serialize};

use super::Row;
use super::strand::StrandKey;

/// By strand. Who reads a topic from where a subscription began does not meet such messages, whose
/// ids may be below, and looks here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Arrived;

impl Row for Arrived {
    const TABLE: u8 = 18;
    type Key = StrandKey;
}

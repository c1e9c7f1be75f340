//! What one subscription has settled of one run, where order does not matter.

use model::{Incarnation, MessageId};
use serde::{Deserialize, Serialize};

use super::{Row, fixed_key};

/// By run and subscription, so that a run goes with all of its holes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct HolesKey {
    /// The topic's incarnation.
    pub topic: Incarnation,
    /// The id of the run's first message.
    pub first: MessageId,
    /// The subscription's incarnation.
    pub subscription: Incarnation,
}

/// The settled messages of a run. A run without a row has none.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Holes {
    /// Bit `n` of the words, from the lowest, is message `n` of the run.
    Some(Vec<u64>),
    /// Every message is settled.
    All,
}

impl Holes {
    /// Whether message `number` of the run, from zero, is settled.
    #[must_use]
    pub fn has(&self, number: u64) -> bool {
        match self {
            Holes::All => true,
            Holes::Some(words) => {
                let word = words.get((number / 64) as usize);
                word.is_some_and(|word| word >> (number % 64) & 1 == 1)
            }
        }
    }
}

impl Row for Holes {
    const TABLE: u8 = 7;
    type Key = HolesKey;
}

fixed_key!(HolesKey {
    topic: number,
    first: number,
    subscription: number
});

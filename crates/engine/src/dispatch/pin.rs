//! At which epoch this leader holds the pin of a key.

use model::Epoch;

/// Until keys can move, every key is pinned at the first epoch. Messages without a key have no pin.
pub(super) fn epoch(keyed: bool) -> Epoch {
    Epoch(u64::from(keyed))
}

/// Whether a delivery's epoch is one of a message with an ordering key.
pub(super) fn is_keyed(epoch: Epoch) -> bool {
    epoch != Epoch(0)
}

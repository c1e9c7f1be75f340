//! A shard wants to own keys that it has no strand of.

use model::ShardNumber;
use serde::{Deserialize, Serialize};

use super::Pin;
use super::apply::Pins;
use super::table::counters::Counters;
use crate::kv::{Overlay, ViewExt};
use crate::table::strand::StrandKey;

/// Pins keys to a shard, where they are not pinned yet.
///
/// A key that is pinned to the shard already gets a fresh epoch: an answer may have been lost, and
/// the strand, if there was one, may have come and gone since. What a move has brought stays
/// noted, so that the shard opens that copy and never an empty strand. A key that is pinned
/// elsewhere stays there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claim {
    /// Who wants to own them.
    pub shard: ShardNumber,
    /// The keys.
    pub strands: Vec<StrandKey>,
}

impl Claim {
    pub(super) fn apply(&self, overlay: &mut Overlay<'_>, counters: &mut Counters) -> Pins {
        let mut pins = Vec::with_capacity(self.strands.len());
        for key in &self.strands {
            let pin = overlay.row::<Pin>(key)?;
            let pin = match pin {
                Some(pin) if pin.shard != self.shard => pin,
                own => {
                    let epoch = counters.next_epoch();
                    let pin = Pin {
                        shard: self.shard,
                        epoch,
                        since: own.map_or(epoch, |pin| pin.since),
                        moved: own.and_then(|pin| pin.moved),
                    };
                    overlay.put(key, &pin);
                    pin
                }
            };
            pins.push(Some(pin));
        }
        Ok(pins)
    }
}

//! Pins go, so that there are no more of them than keys in use.

use model::{Epoch, MessageId, ShardNumber};
use serde::{Deserialize, Serialize};

use super::Pin;
use super::apply::Pins;
use super::table::counters::Counters;
use crate::kv::{Overlay, ViewExt};
use crate::table::strand::StrandKey;

/// Removes pins that still have the epoch at which their owner has sealed its strand, or has found
/// that it has none.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Release {
    /// The owner.
    pub shard: ShardNumber,
    /// The pins.
    pub pins: Vec<PinRelease>,
}

/// One pin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PinRelease {
    /// The key.
    pub key: StrandKey,
    /// The epoch that the pin must have.
    pub epoch: Epoch,
    /// The newest id of the strand. `None` where the owner has no strand; such a pin stays if a
    /// move wrote it, because the key's messages then wait at the owner to be activated.
    pub last: Option<MessageId>,
}

impl Release {
    pub(super) fn apply(&self, overlay: &mut Overlay<'_>, counters: &mut Counters) -> Pins {
        let mut pins = Vec::with_capacity(self.pins.len());
        for release in &self.pins {
            let pin = overlay.row::<Pin>(&release.key)?;
            let stays = pin.filter(|pin| !self.releases(release, pin));
            if stays.is_none() {
                overlay.delete::<Pin>(&release.key);
                // Raised also when the pin was gone: the answer of the first attempt was lost.
                counters.raise_floor(release.last.unwrap_or_default());
            }
            pins.push(stays);
        }
        Ok(pins)
    }

    fn releases(&self, release: &PinRelease, pin: &Pin) -> bool {
        pin.shard == self.shard
            && pin.epoch == release.epoch
            && (release.last.is_some() || pin.moved.is_none())
    }
}

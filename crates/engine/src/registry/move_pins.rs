//! Pins are bound to other shards: the one point at which a move happens, or is undone.

use model::{Epoch, MessageId, ShardNumber, sabotage};
use serde::{Deserialize, Serialize};

use super::apply::Pins;
use super::table::counters::Counters;
use super::{MoveId, Pin};
use crate::kv::{Overlay, ViewExt};
use crate::table::strand::StrandKey;

/// Binds pins to other shards, each at a fresh epoch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MovePins {
    /// The pins.
    pub moves: Vec<PinMove>,
}

/// One pin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PinMove {
    /// The key.
    pub key: StrandKey,
    /// The epoch that the pin must have: the one at which the strand is sealed.
    pub from: Epoch,
    /// The new owner; the old one undoes a move that has not happened.
    pub to: ShardNumber,
    /// Which copy the new owner is to open. `None` to undo.
    pub moved: Option<MoveId>,
    /// The newest id of the strand.
    pub last: MessageId,
}

impl MovePins {
    pub(super) fn apply(&self, overlay: &mut Overlay<'_>, counters: &mut Counters) -> Pins {
        let mut pins = Vec::with_capacity(self.moves.len());
        for wanted in &self.moves {
            let mut pin = overlay.row::<Pin>(&wanted.key)?;
            if let Some(before) = pin.filter(|pin| pin.epoch == wanted.from) {
                counters.raise_floor(wanted.last);
                let is_undone = wanted.to == before.shard;
                let epoch = match is_undone && sabotage!("undo-without-a-new-epoch") {
                    true => before.epoch,
                    false => counters.next_epoch(),
                };
                let moved = wanted.carry_out(&before, epoch);
                overlay.put(&wanted.key, &moved);
                pin = Some(moved);
            }
            pins.push(pin);
        }
        Ok(pins)
    }
}

impl PinMove {
    fn carry_out(&self, before: &Pin, epoch: Epoch) -> Pin {
        let is_undone = self.to == before.shard;
        Pin {
            shard: self.to,
            epoch,
            since: if is_undone { before.since } else { epoch },
            moved: self.moved,
        }
    }
}

//! The registry group: the one truth about which shard owns a key. It is replicated, so it loses
//! nothing; what is lost are its answers.

use super::flaws::{Flaw, Flaws};
use super::words::{Epoch, KEYS, Key, MessageId, ShardNumber};

/// What the registry group has committed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Registry {
    /// The newest epoch given out, to any key.
    pub(crate) epoch: Epoch,
    /// No key that is pinned anew had an id above it.
    pub(crate) id_floor: MessageId,
    pub(crate) pins: [Option<Pin>; KEYS],
}

/// Which shard owns a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Pin {
    pub(crate) shard: ShardNumber,
    pub(crate) epoch: Epoch,
    /// When this ownership began: the epoch of the first claim, or of the move that brought the
    /// key. A fresh epoch for the owner and an undo keep it.
    pub(crate) since: Epoch,
    /// The copy that came with the key, named by the epoch at which its source was sealed.
    pub(crate) copy: Option<Epoch>,
}

/// What every command answers: the pin of its key as it is now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Answer {
    pub(crate) pin: Option<Pin>,
    /// The newest epoch given out when this was said.
    pub(crate) as_of: Epoch,
    pub(crate) id_floor: MessageId,
}

/// A pin changes its owner, if it still is at an epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Move {
    pub(crate) source: ShardNumber,
    pub(crate) from: Epoch,
    pub(crate) to: ShardNumber,
    /// The newest id of the strand.
    pub(crate) last: MessageId,
}

/// A pin goes, if it still is at an epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Release {
    pub(crate) shard: ShardNumber,
    pub(crate) epoch: Epoch,
    /// The newest id of the strand; none if the owner has no strand.
    pub(crate) last: Option<MessageId>,
}

impl Move {
    /// An undo gives the key back to the shard that has sealed it.
    pub(crate) fn is_undo(&self) -> bool {
        self.source == self.to
    }
}

impl Registry {
    pub(crate) fn answer(&self, key: Key) -> Answer {
        Answer {
            pin: self.pins[key.0],
            as_of: self.epoch,
            id_floor: self.id_floor,
        }
    }

    pub(crate) fn claim(&mut self, key: Key, shard: ShardNumber) {
        let pin = self.pins[key.0];
        if pin.is_some_and(|pin| pin.shard != shard) {
            return;
        }
        let epoch = self.next_epoch();
        let fresh = Pin {
            shard,
            epoch,
            since: epoch,
            copy: None,
        };
        self.pins[key.0] = Some(pin.map_or(fresh, |pin| Pin { epoch, ..pin }));
    }

    pub(crate) fn move_pin(&mut self, key: Key, wanted: &Move, flaws: Flaws) {
        let Some(pin) = self.pins[key.0] else { return };
        let late_undo = wanted.is_undo() && flaws.has(Flaw::UndoAfterMove);
        if pin.epoch != wanted.from && !late_undo {
            return;
        }
        let epoch = self.next_epoch();
        let moved = Pin {
            shard: wanted.to,
            epoch,
            since: epoch,
            copy: Some(wanted.from),
        };
        let undone = Pin {
            since: pin.since.min(wanted.from),
            copy: None,
            ..moved
        };
        self.pins[key.0] = Some(if wanted.is_undo() { undone } else { moved });
        if !flaws.has(Flaw::MoveForgetsIds) {
            self.id_floor = self.id_floor.max(wanted.last);
        }
    }

    pub(crate) fn release(&mut self, key: Key, wanted: &Release, flaws: Flaws) {
        let Some(pin) = self.pins[key.0] else { return };
        let swept = wanted.last.is_none();
        let is_owner = pin.shard == wanted.shard;
        let is_meant = pin.epoch == wanted.epoch || swept && flaws.has(Flaw::SweepAtAnyEpoch);
        let is_staged = swept && pin.copy.is_some() && !flaws.has(Flaw::SweepOfAMovedPin);
        if is_owner && is_meant && !is_staged {
            self.pins[key.0] = None;
            if !flaws.has(Flaw::ReleaseForgetsIds) {
                self.id_floor = self.id_floor.max(wanted.last.unwrap_or_default());
            }
        }
    }

    fn next_epoch(&mut self) -> Epoch {
        self.epoch = Epoch(self.epoch.0 + 1);
        self.epoch
    }
}

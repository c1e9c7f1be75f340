//! The copy that a move brings: sent, staged, whole, activated.

use super::flaws::Flaw;
use super::network::{Activate, Copy, Message, Purpose};
use super::registry::{Answer, Move};
use super::state::Row;
use super::strand::{Lane, Strand};
use super::turn::Turn;
use super::words::{Epoch, Key, LATE, ShardNumber, Subscription};

impl Turn<'_> {
    /// The source sends what it has sealed, with a lane for every subscription that it knows.
    pub(crate) fn send_copy(&mut self, shard: ShardNumber, key: Key) {
        let row = *self.state.row(shard, key).expect("the strand is sealed");
        let copy = Copy {
            epoch: row.epoch,
            strand: self.copied(shard, key, &row.strand),
            knows_late: self.state.shard(shard).late_attached.is_some(),
        };
        self.state
            .tell_shard(shard.other(), key, Message::Copy(copy));
    }

    fn copied(&self, shard: ShardNumber, key: Key, strand: &Strand) -> Strand {
        let mut copy = *strand;
        for subscription in Subscription::all() {
            let lane = self.state.lane(shard, key, strand, subscription);
            copy.lanes[subscription.0] = lane.map(|lane| self.copied_lane(lane));
        }
        copy
    }

    fn copied_lane(&self, mut lane: Lane) -> Lane {
        if self.has(Flaw::MoveForgetsMarks) {
            lane.marks = Lane::default().marks;
        }
        if self.has(Flaw::MoveForgetsFences) {
            lane.fences = Lane::default().fences;
        }
        lane
    }

    /// The target commits a copy, which is whole. Of one sealed strand there is one copy; one that
    /// comes after the key has come some other way is too late.
    pub(crate) fn stage(&mut self, shard: ShardNumber, key: Key, copy: Copy) {
        let row = self.state.row(shard, key);
        let is_late = row.is_some_and(|row| row.epoch > copy.epoch);
        if is_late && !self.has(Flaw::StageAfterActivate) {
            return;
        }
        if self.staged(shard, key, copy.epoch).is_none() {
            let staged = &mut self.state.shard_mut(shard).staged;
            staged.push((key, copy));
            staged.sort_unstable();
        }
        self.state
            .tell_shard(shard.other(), key, Message::Whole(copy.epoch));
    }

    /// The source asks for the one change that moves the key.
    pub(crate) fn copy_is_whole(&mut self, shard: ShardNumber, key: Key, epoch: Epoch) {
        let Some(row) = self.state.row(shard, key).copied() else {
            return;
        };
        if row.sealed == Some(Purpose::Move) && row.epoch == epoch {
            let (source, to) = (shard, shard.other());
            let (from, last) = (row.epoch, row.strand.last);
            self.state.tell_registry(
                key,
                Message::Move(Move {
                    source,
                    from,
                    to,
                    last,
                }),
            );
        }
    }

    /// The target opens its copy at exactly the epoch that the registry gave the pin.
    pub(crate) fn activate(&mut self, shard: ShardNumber, key: Key, activate: &Activate) {
        let row = self.state.row(shard, key).copied();
        if row.is_some_and(|row| row.epoch >= activate.epoch) {
            let drop = Message::Drop(activate.copy);
            self.state.tell_shard(shard.other(), key, drop);
            return;
        }
        let Some(copy) = self.staged(shard, key, activate.copy) else {
            self.serve_waiting(shard, key);
            return;
        };
        let knows_late = self.state.shard(shard).late_attached.is_some();
        if copy.knows_late && !knows_late && !self.has(Flaw::ActivateUnderAnOldCatalogue) {
            return;
        }
        let epoch = if self.has(Flaw::ActivateAtAGuessedEpoch) {
            Epoch(activate.copy.0 + 1)
        } else {
            activate.epoch
        };
        if epoch <= self.state.shard(shard).floor {
            self.state.tell_registry(key, Message::Claim(shard));
            return;
        }
        let strand = self.activated(&copy, knows_late);
        let row = Row {
            epoch,
            sealed: None,
            strand,
        };
        self.unstage(shard, key, copy.epoch);
        self.install(shard, key, row, activate.id_floor);
        self.state
            .tell_shard(shard.other(), key, Message::Drop(copy.epoch));
        self.serve_waiting(shard, key);
    }

    /// A subscription that the copy lacks starts behind the copy's last id.
    fn activated(&self, copy: &Copy, knows_late: bool) -> Strand {
        let mut strand = copy.strand;
        let lane = &mut strand.lanes[LATE.0];
        if !knows_late {
            *lane = None;
        } else if lane.is_none() && !self.has(Flaw::LateLaneAtTheAttachPoint) {
            *lane = Some(Lane::behind(strand.messages));
        }
        strand
    }

    /// Copies go that no pin can name any more: the pin has passed the epoch of their source.
    pub(crate) fn discard_outlived_copies(
        &mut self,
        shard: ShardNumber,
        key: Key,
        answer: &Answer,
    ) {
        let is_outlived = |copy: &Copy| match answer.pin {
            None => answer.as_of >= copy.epoch,
            Some(pin) => pin.epoch > copy.epoch && pin.copy != Some(copy.epoch),
        };
        let staged = &mut self.state.shard_mut(shard).staged;
        staged.retain(|(of, copy)| *of != key || !is_outlived(copy));
    }

    fn staged(&self, shard: ShardNumber, key: Key, epoch: Epoch) -> Option<Copy> {
        let mut staged = self.state.shard(shard).staged.iter();
        let found = staged.find(|(of, copy)| *of == key && copy.epoch == epoch);
        found.map(|(_, copy)| *copy)
    }

    fn unstage(&mut self, shard: ShardNumber, key: Key, epoch: Epoch) {
        let staged = &mut self.state.shard_mut(shard).staged;
        staged.retain(|(of, copy)| *of != key || copy.epoch != epoch);
    }
}

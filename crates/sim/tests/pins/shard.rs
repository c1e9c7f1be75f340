//! A shard's side of a pin's life: open, seal, drop, and what a leader does with an answer of the
//! registry.

use super::flaws::Flaw;
use super::network::{Activate, Message, Purpose};
use super::registry::{Answer, Move, Pin, Release};
use super::state::{Row, Sent};
use super::strand::Strand;
use super::turn::Turn;
use super::words::{Epoch, Key, MessageId, SUBSCRIPTIONS, ShardNumber};

impl Turn<'_> {
    /// A publish reaches a shard's leader.
    pub(crate) fn publish(&mut self, shard: ShardNumber, key: Key) {
        self.state.leaders[shard.0].waiting[key.0] += 1;
        self.serve_waiting(shard, key);
    }

    /// Publishes that wait are accepted, if the strand is open; without a strand the key is claimed.
    pub(crate) fn serve_waiting(&mut self, shard: ShardNumber, key: Key) {
        if self.state.leaders[shard.0].waiting[key.0] == 0 {
            return;
        }
        if self.state.row(shard, key).is_none() && self.has(Flaw::AcceptWithoutAClaim) {
            self.open(shard, key, Epoch::default(), MessageId::default());
        }
        match self.state.row(shard, key) {
            Some(Row { sealed: None, .. }) => self.accept_waiting(shard, key),
            Some(_) => {}
            None if self.state.network.is_claiming(key, shard) => {}
            None if self.state.awaits_catalogue(shard, key) => {}
            None => self.state.tell_registry(key, Message::Claim(shard)),
        }
    }

    fn accept_waiting(&mut self, shard: ShardNumber, key: Key) {
        let waiting = std::mem::take(&mut self.state.leaders[shard.0].waiting[key.0]);
        for _ in 0..waiting {
            self.accept(shard, key);
        }
    }

    fn accept(&mut self, shard: ShardNumber, key: Key) {
        if self.has(Flaw::FloorRaisedAtThePublish) {
            self.go_on_above(shard, self.state.registry.id_floor);
        }
        self.state.shard_mut(shard).counter += 1;
        let id = MessageId::new(self.state.shard(shard).counter, shard);
        let pin = self.state.registry.pins[key.0];
        let by_owner = pin.is_some_and(|pin| pin.shard == shard);
        let has_late = self.state.has_late();
        let place = self.state.witness.accept(key, id, by_owner, has_late);
        let row = self.state.row_mut(shard, key).expect("the strand is open");
        row.strand.messages.insert(place);
        row.strand.last = id;
    }

    /// The registry has said how things stood with a key.
    pub(crate) fn hear(&mut self, shard: ShardNumber, key: Key, answer: &Answer) {
        self.discard_outlived_copies(shard, key, answer);
        match self.state.row(shard, key).copied() {
            None => self.hear_without_a_strand(shard, key, answer),
            Some(row) if row.sealed.is_none() => self.adopt(shard, key, answer),
            Some(row) => self.hear_sealed(shard, key, &row, answer),
        }
        let elsewhere = answer.pin.is_some_and(|pin| pin.shard != shard);
        if elsewhere && self.state.row(shard, key).is_none() {
            self.forward_waiting(shard, key);
        }
    }

    fn hear_without_a_strand(&mut self, shard: ShardNumber, key: Key, answer: &Answer) {
        let Some(pin) = answer.pin.filter(|pin| pin.shard == shard) else {
            return;
        };
        if let Some(copy) = pin.copy.filter(|_| !self.has(Flaw::ClaimBeforeActivate)) {
            let (epoch, id_floor) = (pin.epoch, answer.id_floor);
            self.activate(
                shard,
                key,
                &Activate {
                    epoch,
                    copy,
                    id_floor,
                },
            );
            return;
        }
        let is_wanted = self.state.leaders[shard.0].waiting[key.0] > 0;
        if is_wanted && pin.epoch > self.state.shard(shard).floor {
            self.open(shard, key, pin.epoch, answer.id_floor);
        }
        self.serve_waiting(shard, key);
    }

    /// The owner goes on at the newer epoch that a claim gave it meanwhile.
    fn adopt(&mut self, shard: ShardNumber, key: Key, answer: &Answer) {
        let row = self.state.row_mut(shard, key).expect("the strand is open");
        if let Some(pin) = answer.pin.filter(|pin| pin.shard == shard) {
            row.epoch = row.epoch.max(pin.epoch);
        }
    }

    /// A sealed strand is work: what is to be done follows from the pin.
    fn hear_sealed(&mut self, shard: ShardNumber, key: Key, row: &Row, answer: &Answer) {
        let Some(pin) = answer.pin else {
            if answer.as_of >= row.epoch || self.has(Flaw::OldAnswerDrops) {
                self.drop_sealed(shard, key, row.epoch);
            }
            return;
        };
        // An answer of before the strand was opened says nothing about it.
        if pin.epoch < row.epoch {
            return;
        }
        if pin.shard != shard {
            self.hand_over(shard, key, row, &pin, answer.id_floor);
        } else if pin.epoch == row.epoch {
            self.finish(shard, key, row);
        } else if pin.since <= row.epoch || self.has(Flaw::ReopenOfAnEarlierOwnership) {
            self.reopen(shard, key, pin.epoch);
        } else {
            self.drop_sealed(shard, key, row.epoch);
            self.hear_without_a_strand(shard, key, answer);
        }
    }

    /// The key is elsewhere. The source drives the activation of its own copy, then drops.
    fn hand_over(
        &mut self,
        shard: ShardNumber,
        key: Key,
        row: &Row,
        pin: &Pin,
        id_floor: MessageId,
    ) {
        if pin.copy == Some(row.epoch) {
            let (epoch, copy) = (pin.epoch, row.epoch);
            let activate = Activate {
                epoch,
                copy,
                id_floor,
            };
            self.state
                .tell_shard(pin.shard, key, Message::Activate(activate));
        } else {
            self.drop_sealed(shard, key, row.epoch);
        }
    }

    /// What the strand was sealed for goes on.
    fn finish(&mut self, shard: ShardNumber, key: Key, row: &Row) {
        match row.sealed {
            Some(Purpose::Move) => self.send_copy(shard, key),
            Some(Purpose::Release) => {
                let (epoch, last) = (row.epoch, Some(row.strand.last));
                let release = Release { shard, epoch, last };
                self.state.tell_registry(key, Message::Release(release));
            }
            None => {}
        }
    }

    pub(crate) fn seal(&mut self, shard: ShardNumber, key: Key, epoch: Epoch, purpose: Purpose) {
        let Some(row) = self.state.row(shard, key).copied() else {
            self.raise_floor(shard, epoch);
            return;
        };
        let is_meant = row.sealed.is_none() && row.epoch == epoch;
        let is_needless = self.state.is_releasable(shard, key, &row);
        let may_go = is_needless || self.has(Flaw::ReleaseOfWhatIsWanted);
        if is_meant && (purpose == Purpose::Move || may_go) {
            let row = Row {
                sealed: Some(purpose),
                ..row
            };
            self.state.shard_mut(shard).rows[key.0] = Some(row);
            self.forget_lanes(shard, key, false);
            self.finish(shard, key, &row);
        }
    }

    /// The source of a move that takes too long wants its strand back.
    pub(crate) fn undo(&mut self, shard: ShardNumber, key: Key) {
        let row = *self.state.row(shard, key).expect("the strand is sealed");
        if self.has(Flaw::UndoWithoutANewEpoch) {
            self.reopen(shard, key, row.epoch);
            return;
        }
        let (source, to) = (shard, shard);
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

    /// The strand sealed at exactly this epoch goes; its epoch stays, as the shard's floor.
    pub(crate) fn drop_sealed(&mut self, shard: ShardNumber, key: Key, epoch: Epoch) {
        let careless = self.has(Flaw::DropWithoutItsEpoch);
        let Some(row) = self.state.row(shard, key).copied() else {
            return;
        };
        if row.sealed.is_some() && (row.epoch == epoch || careless) {
            self.state.shard_mut(shard).rows[key.0] = None;
            self.forget_lanes(shard, key, false);
            if !self.has(Flaw::DropForgetsItsEpoch) {
                self.raise_floor(shard, row.epoch);
            }
            self.serve_waiting(shard, key);
        }
    }

    /// A pin is thought to have no strand here: if so, none will ever open at its epoch.
    pub(crate) fn seal_absent(&mut self, shard: ShardNumber, key: Key, epoch: Epoch) {
        if self.state.row(shard, key).is_some() {
            return;
        }
        if !self.has(Flaw::SweepForgetsItsEpoch) {
            self.raise_floor(shard, epoch);
        }
        let release = Release {
            shard,
            epoch,
            last: None,
        };
        self.state.tell_registry(key, Message::Release(release));
    }

    fn open(&mut self, shard: ShardNumber, key: Key, epoch: Epoch, id_floor: MessageId) {
        let row = Row {
            epoch,
            sealed: None,
            strand: Strand::default(),
        };
        self.install(shard, key, row, id_floor);
        self.forget_lanes(shard, key, true);
        self.serve_waiting(shard, key);
    }

    fn reopen(&mut self, shard: ShardNumber, key: Key, epoch: Epoch) {
        let row = *self.state.row(shard, key).expect("the strand is sealed");
        let row = Row {
            epoch,
            sealed: None,
            ..row
        };
        self.install(shard, key, row, MessageId::default());
        self.serve_waiting(shard, key);
    }

    /// A strand is open from now on, and its ids go on above all that the key ever had.
    pub(crate) fn install(&mut self, shard: ShardNumber, key: Key, row: Row, id_floor: MessageId) {
        if !self.has(Flaw::FloorRaisedAtThePublish) {
            self.go_on_above(shard, id_floor);
        }
        self.state.shard_mut(shard).rows[key.0] = Some(row);
        self.forget_lanes(shard, key, false);
    }

    fn go_on_above(&mut self, shard: ShardNumber, id: MessageId) {
        let shard = self.state.shard_mut(shard);
        shard.counter = shard.counter.max(id.counter());
    }

    fn raise_floor(&mut self, shard: ShardNumber, epoch: Epoch) {
        let shard = self.state.shard_mut(shard);
        shard.floor = shard.floor.max(epoch);
    }

    /// The leader begins anew with the lanes of a strand. It knows a strand's past if it has none.
    fn forget_lanes(&mut self, shard: ShardNumber, key: Key, knows: bool) {
        let lane = Sent {
            knows,
            ..Sent::default()
        };
        self.state.leaders[shard.0].lanes[key.0] = [lane; SUBSCRIPTIONS];
    }

    /// Publishes go where the pin is; the router knows it now.
    fn forward_waiting(&mut self, shard: ShardNumber, key: Key) {
        let waiting = std::mem::take(&mut self.state.leaders[shard.0].waiting[key.0]);
        let other = shard.other();
        self.state.leaders[other.0].waiting[key.0] += waiting;
        self.serve_waiting(other, key);
    }
}

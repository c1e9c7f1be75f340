//! Deliveries and acks of a lane, at the leader of the shard whose strand is open.

use super::flaws::{Flaw, Flaws};
use super::state::State;
use super::strand::Lane;
use super::turn::Turn;
use super::words::{Epoch, Generation, Key, Messages, Place, ShardNumber, Subscription};

impl State {
    /// The next message of a lane that its leader would send, if there is one.
    pub(crate) fn next_of_lane(
        &self,
        flaws: Flaws,
        shard: ShardNumber,
        key: Key,
        to: Subscription,
    ) -> Option<Place> {
        let row = self.row(shard, key).filter(|row| row.sealed.is_none())?;
        let lane = self.lane(shard, key, &row.strand, to)?;
        let sent = &self.leaders[shard.0].lanes[key.0][to.0];
        if !sent.knows && !flaws.has(Flaw::ResendWithoutARewind) {
            return lane.position(row.strand.messages);
        }
        let kept = lane.settled.union(lane.marks).union(sent.messages);
        row.strand.messages.without(kept).iter().next()
    }

    /// What a shard's leader has sent of a lane and nobody has acked.
    pub(crate) fn leased(&self, shard: ShardNumber, key: Key, to: Subscription) -> Messages {
        let row = self.row(shard, key).filter(|row| row.sealed.is_none());
        let lane = row.and_then(|row| self.lane(shard, key, &row.strand, to));
        let sent = self.leaders[shard.0].lanes[key.0][to.0].messages;
        lane.map_or_else(Messages::default, |lane| {
            sent.without(lane.settled).without(lane.marks)
        })
    }

    /// Whether a shard's leader answers acks of a key: not while the strand is frozen or elsewhere.
    pub(crate) fn takes_acks(&self, flaws: Flaws, shard: ShardNumber, key: Key) -> bool {
        let row = self.row(shard, key);
        row.is_some_and(|row| row.sealed.is_none() || flaws.has(Flaw::AckWhileSealed))
    }
}

impl Turn<'_> {
    /// A message is delivered. A leader that doesn't know what was sent before goes back first.
    pub(crate) fn deliver(&mut self, shard: ShardNumber, key: Key, to: Subscription) {
        let next = self.state.next_of_lane(self.flaws, shard, key, to);
        let place = next.expect("something can be sent");
        let knows = self.state.leaders[shard.0].lanes[key.0][to.0].knows;
        if !knows && !self.has(Flaw::ResendWithoutARewind) {
            self.rewind(shard, key, to, place);
        }
        let generation = self.generation(shard, key, to);
        self.state.leaders[shard.0].lanes[key.0][to.0]
            .messages
            .insert(place);
        self.state.witness.deliver(key, to, place, generation);
    }

    /// A delivery has failed: the lane goes back to it.
    pub(crate) fn nack(&mut self, shard: ShardNumber, key: Key, by: Subscription, place: Place) {
        self.rewind(shard, key, by, place);
    }

    /// Commits that the lane goes back, before anything is sent again.
    fn rewind(&mut self, shard: ShardNumber, key: Key, of: Subscription, from: Place) {
        let sent = &mut self.state.leaders[shard.0].lanes[key.0][of.0];
        sent.knows = true;
        sent.round += 1;
        sent.messages = sent.messages.before(from);
        let generation = self.generation(shard, key, of);
        let keep_marks = self.has(Flaw::MarkOutlivesARewind);
        let mut lane = self.lane_of(shard, key, of).expect("the lane can be sent");
        lane.rewind(from, generation, keep_marks);
        self.put_lane(shard, key, of, lane);
    }

    /// An ack arrives, with the id of the latest delivery of a message, or of the one before.
    pub(crate) fn ack(
        &mut self,
        shard: ShardNumber,
        key: Key,
        by: Subscription,
        place: Place,
        id: Generation,
    ) {
        let Some(mut lane) = self.lane_of(shard, key, by) else {
            return;
        };
        let messages = self.state.row(shard, key).map(|row| row.strand.messages);
        let messages = messages.filter(|messages| messages.contains(place));
        let Some(messages) = messages else { return };
        let [latest, _] = self.state.witness.ids_of(key, by, place);
        let is_settled = lane.settled.contains(place) || lane.marks.contains(place);
        if !is_settled && !self.counts(shard, key, by, place, id, &lane) {
            return;
        }
        if id == latest {
            self.state.witness.acked(key, by, place);
        }
        if is_settled {
            return;
        }
        let before = lane.settled;
        lane.mark(messages, place);
        self.put_lane(shard, key, by, lane);
        self.state.witness.counted(key, by, place);
        let settled = lane.settled.without(before);
        self.state.witness.final_for(key, by, settled);
    }

    /// An id counts until its message is sent again, or the lane has gone back behind it.
    fn counts(
        &self,
        shard: ShardNumber,
        key: Key,
        by: Subscription,
        place: Place,
        id: Generation,
        lane: &Lane,
    ) -> bool {
        let sent = &self.state.leaders[shard.0].lanes[key.0][by.0];
        let [latest, _] = self.state.witness.ids_of(key, by, place);
        let is_sent_again = sent.messages.contains(place) && id != latest;
        id >= lane.fences[place.0] && !is_sent_again
    }

    fn generation(&self, shard: ShardNumber, key: Key, of: Subscription) -> Generation {
        let row = self.state.row(shard, key).expect("the strand is open");
        let mut generation = Generation {
            epoch: row.epoch,
            term: self.state.shard(shard).term,
            round: self.state.leaders[shard.0].lanes[key.0][of.0].round,
        };
        if self.has(Flaw::GenerationWithoutEpoch) {
            generation.epoch = Epoch::default();
        }
        if self.has(Flaw::GenerationWithoutTerm) {
            generation.term = 0;
        }
        generation
    }

    fn lane_of(&self, shard: ShardNumber, key: Key, of: Subscription) -> Option<Lane> {
        let row = self.state.row(shard, key)?;
        self.state.lane(shard, key, &row.strand, of)
    }

    fn put_lane(&mut self, shard: ShardNumber, key: Key, of: Subscription, lane: Lane) {
        let row = self
            .state
            .row_mut(shard, key)
            .expect("the shard has the lane");
        row.strand.lanes[of.0] = Some(lane);
    }
}

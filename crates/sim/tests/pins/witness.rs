//! What an onlooker has seen, who knows nothing of shards: publishes accepted, messages delivered,
//! acks answered. The promises are judged by this alone.

use super::words::{Generation, KEYS, Key, LATE, MESSAGES, MessageId, Messages, Place};
use super::words::{SUBSCRIPTIONS, Subscription};

/// What has happened so far.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Witness {
    accepted: [Accepted; KEYS],
    seen: [[Seen; SUBSCRIPTIONS]; KEYS],
    /// The first promise that was broken; nothing happens after it.
    pub(crate) broken: Option<Promise>,
}

/// A promise about publishes, deliveries and acks that can be seen to be broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Promise {
    /// P2: a message was delivered, and one before it never was.
    Gap,
    /// P3: an acked message did not follow an earlier one that came again.
    Cascade,
    /// P5: an acked message came back, and no earlier one had.
    AcksHold,
    /// P7: a shard accepted a publish of a key that was another's.
    StaleOwner,
    /// P8: an id was not above all earlier ones of its key.
    GrowingIds,
    /// A subscription got what was published before it was created.
    BeforeItsTime,
}

/// The publishes of one key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct Accepted {
    count: usize,
    ids: [MessageId; MESSAGES],
    /// Accepted before the late subscription was asked for.
    before_late: Messages,
    /// Accepted after its creation was answered.
    since_late: Messages,
}

/// The deliveries of one key to one subscription.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct Seen {
    delivered: Messages,
    /// The generations of the last two deliveries of each message, the last one first.
    generations: [[Generation; 2]; MESSAGES],
    /// An earlier message came again: these must come again after it.
    owed: Messages,
    /// Acked by the id of the latest delivery, and answered OK.
    acked: Messages,
    /// Some ack counted.
    settled: Messages,
}

impl Witness {
    pub(crate) fn ids_up_to(&self, key: Key, last: MessageId) -> Messages {
        let mut messages = Messages::default();
        for place in Messages::first(self.accepted[key.0].count).iter() {
            if self.accepted[key.0].ids[place.0] <= last {
                messages.insert(place);
            }
        }
        messages
    }

    pub(crate) fn has_accepted(&self, key: Key) -> bool {
        self.accepted[key.0].count > 0
    }

    /// A publish is answered with an id.
    pub(crate) fn accept(
        &mut self,
        key: Key,
        id: MessageId,
        by_owner: bool,
        has_late: bool,
    ) -> Place {
        let accepted = &mut self.accepted[key.0];
        let place = Place(accepted.count);
        let grows = accepted.ids[..place.0].iter().all(|earlier| *earlier < id);
        accepted.ids[place.0] = id;
        accepted.count += 1;
        if has_late {
            accepted.since_late.insert(place);
        }
        self.require(grows, Promise::GrowingIds);
        self.require(by_owner, Promise::StaleOwner);
        place
    }

    /// The late subscription is asked for.
    pub(crate) fn late_begins(&mut self) {
        for accepted in &mut self.accepted {
            accepted.before_late = Messages::first(accepted.count);
        }
    }

    pub(crate) fn deliver(
        &mut self,
        key: Key,
        to: Subscription,
        place: Place,
        generation: Generation,
    ) {
        let is_early = to == LATE && self.accepted[key.0].before_late.contains(place);
        let seen = &mut self.seen[key.0][to.0];
        let again = seen.delivered.contains(place);
        let comes_back = seen.acked.contains(place) && !seen.owed.contains(place);
        let earlier = Messages::first(place.0);
        let has_gap = seen.delivered.iter().next().is_some_and(|first| {
            let between = earlier.after(first);
            !between.without(seen.delivered).is_empty()
        });
        seen.delivered.insert(place);
        let [latest, _] = seen.generations[place.0];
        seen.generations[place.0] = [generation, latest];
        if again {
            seen.owed = seen.owed.union(seen.delivered.after(place));
            seen.acked = seen.acked.without(seen.owed);
        }
        seen.owed.remove(place);
        self.require(!is_early, Promise::BeforeItsTime);
        self.require(!comes_back, Promise::AcksHold);
        self.require(!has_gap, Promise::Gap);
    }

    /// The ids that a client may still send: of the last two deliveries, the last one first.
    pub(crate) fn ids_of(&self, key: Key, of: Subscription, place: Place) -> [Generation; 2] {
        self.seen[key.0][of.0].generations[place.0]
    }

    /// What was delivered, whatever became of it.
    pub(crate) fn delivered(&self, key: Key, to: Subscription) -> Messages {
        self.seen[key.0][to.0].delivered
    }

    /// An ack of a latest delivery is answered OK.
    pub(crate) fn acked(&mut self, key: Key, by: Subscription, place: Place) {
        self.seen[key.0][by.0].acked.insert(place);
    }

    /// An ack counts: the message has it from now on, at least until the lane goes back.
    pub(crate) fn counted(&mut self, key: Key, by: Subscription, place: Place) {
        self.seen[key.0][by.0].settled.insert(place);
    }

    /// Messages are settled for good, and never come again.
    pub(crate) fn final_for(&mut self, key: Key, by: Subscription, messages: Messages) {
        let owed = self.seen[key.0][by.0].owed;
        self.require(messages.and(owed).is_empty(), Promise::Cascade);
    }

    /// What must still be somewhere: accepted, promised to a subscription, and never acked.
    pub(crate) fn awaited(&self, key: Key, by: Subscription) -> Messages {
        let accepted = &self.accepted[key.0];
        let promised = if by == LATE {
            accepted.since_late
        } else {
            Messages::first(accepted.count)
        };
        promised.without(self.seen[key.0][by.0].settled)
    }

    fn require(&mut self, holds: bool, promise: Promise) {
        if !holds && self.broken.is_none() {
            self.broken = Some(promise);
        }
    }
}

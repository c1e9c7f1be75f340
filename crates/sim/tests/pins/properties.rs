//! What must hold in every state, and what must be possible at all.

use stateright::Property;

use super::PinModel;
use super::bounds::Bounds;
use super::settle;
use super::state::State;
use super::witness::Promise;
use super::words::{Generation, Key, LATE, Messages, ShardNumber, Subscription};

pub(crate) const KEY_ORDER: &str = "P2 key order: nothing is passed over";
pub(crate) const CASCADE: &str = "P3 cascade: what follows a redelivery comes again";
pub(crate) const NOTHING_LOST: &str =
    "P4 at least once: what is awaited is in the copy that counts";
pub(crate) const ACKS_HOLD: &str = "P5 acks hold: an acked message does not come back";
pub(crate) const ONE_OWNER: &str = "P7 one owner: at most one shard has the key open";
pub(crate) const NO_STALE_OWNER: &str = "P7 one owner: only the pinned shard accepts a publish";
pub(crate) const GROWING_IDS: &str = "P8 growing ids: an id is above all earlier ones of its key";
pub(crate) const NOT_BEFORE_ITS_TIME: &str = "a subscription gets nothing of before its creation";
pub(crate) const SETTLES: &str = "once faults end nothing is wedged";

const MOVED: &str = "possible: a moved key has been opened";
const RELEASED: &str = "possible: a key that was published has no pin";
const LATE_SERVED: &str = "possible: the late subscription gets a message";
const SENT_AGAIN: &str = "possible: a message is delivered twice";

/// What must hold within bounds, and what must be possible there, so that something was tried.
pub(crate) fn properties(bounds: &Bounds) -> Vec<Property<PinModel>> {
    let mut properties = vec![
        Property::always(KEY_ORDER, |_, state| keeps(state, Promise::Gap)),
        Property::always(CASCADE, |_, state| keeps(state, Promise::Cascade)),
        Property::always(NOTHING_LOST, |_, state| nothing_is_lost(state)),
        Property::always(ACKS_HOLD, |_, state| keeps(state, Promise::AcksHold)),
        Property::always(ONE_OWNER, |_, state| has_one_owner(state)),
        Property::always(NO_STALE_OWNER, |_, state| keeps(state, Promise::StaleOwner)),
        Property::always(GROWING_IDS, |_, state| keeps(state, Promise::GrowingIds)),
        Property::always(NOT_BEFORE_ITS_TIME, |_, state| {
            keeps(state, Promise::BeforeItsTime)
        }),
        Property::always(SETTLES, settles),
    ];
    if bounds.moves > 0 {
        properties.push(Property::sometimes(MOVED, |_, state| {
            any_key(state, is_moved)
        }));
    }
    if bounds.releases > 0 {
        properties.push(Property::sometimes(RELEASED, |_, state| {
            any_key(state, is_released)
        }));
    }
    if bounds.late > 0 {
        properties.push(Property::sometimes(LATE_SERVED, |_, state| {
            any_key(state, is_late_served)
        }));
    }
    if bounds.nacks > 0 {
        properties.push(Property::sometimes(SENT_AGAIN, |_, state| {
            any_key(state, is_sent_again)
        }));
    }
    properties
}

fn any_key(state: &State, is_so: fn(&State, Key) -> bool) -> bool {
    Key::all().any(|key| is_so(state, key))
}

fn is_moved(state: &State, key: Key) -> bool {
    let pin = state.registry.pins[key.0].filter(|pin| pin.copy.is_some());
    pin.is_some_and(|pin| state.row(pin.shard, key).is_some())
}

fn is_released(state: &State, key: Key) -> bool {
    state.registry.pins[key.0].is_none() && state.witness.has_accepted(key)
}

fn is_late_served(state: &State, key: Key) -> bool {
    !state.witness.delivered(key, LATE).is_empty()
}

fn is_sent_again(state: &State, key: Key) -> bool {
    let first = Subscription(0);
    let mut delivered = state.witness.delivered(key, first).iter();
    delivered.any(|place| state.witness.ids_of(key, first, place)[1] != Generation::default())
}

fn keeps(state: &State, promise: Promise) -> bool {
    state.witness.broken != Some(promise)
}

fn has_one_owner(state: &State) -> bool {
    Key::all().all(|key| {
        let rows = ShardNumber::all().filter_map(|shard| state.row(shard, key));
        rows.filter(|row| row.sealed.is_none()).count() <= 1
    })
}

fn nothing_is_lost(state: &State) -> bool {
    let lanes = Key::all().flat_map(|key| Subscription::all().map(move |of| (key, of)));
    lanes.into_iter().all(|(key, of)| {
        let awaited = state.witness.awaited(key, of);
        awaited.without(still_to_come(state, key, of)).is_empty()
    })
}

/// What the copy that the pin names will deliver to a subscription.
fn still_to_come(state: &State, key: Key, to: Subscription) -> Messages {
    let Some(pin) = state.registry.pins[key.0] else {
        return Messages::default();
    };
    let row = state
        .row(pin.shard, key)
        .filter(|row| row.epoch >= pin.since);
    let strand = row.map(|row| row.strand).or_else(|| {
        let mut staged = state.shard(pin.shard).staged.iter();
        let copy = staged.find(|(of, copy)| *of == key && pin.copy == Some(copy.epoch));
        copy.map(|(_, copy)| copy.strand)
    });
    let Some(strand) = strand else {
        return Messages::default();
    };
    let lane = if row.is_none() && to == LATE {
        strand.lanes[to.0]
    } else {
        state.lane(pin.shard, key, &strand, to)
    };
    lane.map_or_else(Messages::default, |lane| {
        strand.messages.without(lane.settled)
    })
}

fn settles(model: &PinModel, state: &State) -> bool {
    let is_judged = state.network.is_empty() && state.witness.broken.is_none();
    !is_judged || settle::settles(state, model.flaws)
}

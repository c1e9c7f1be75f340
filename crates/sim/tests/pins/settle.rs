//! What becomes of a state if nothing happens any more: no publish, no fault, no delay. Then every
//! key must come to rest, whatever was before.

use super::flaws::Flaws;
use super::state::State;
use super::steps::{Step, course, take};
use super::words::{Key, ShardNumber};

/// Far more steps than any state needs; one that needs more goes in circles.
const STEPS_MAX: usize = 200;

/// Whether a state comes to rest.
pub(crate) fn settles(state: &State, flaws: Flaws) -> bool {
    let mut state = state.clone();
    let mut turn = 0;
    for _ in 0..STEPS_MAX {
        if state.network.is_empty() && is_at_rest(&state) {
            return true;
        }
        let Some(step) = next_step(&state, &mut turn) else {
            return false;
        };
        state = take(&state, flaws, step);
    }
    false
}

/// What is on its way arrives first. Then everyone who has something to do has a turn.
fn next_step(state: &State, turn: &mut usize) -> Option<Step> {
    if !state.network.is_empty() {
        return Some(Step::Receive(0));
    }
    let steps = course(state);
    *turn += 1;
    (!steps.is_empty()).then(|| steps[*turn % steps.len()])
}

/// Nobody waits, nothing is sealed or staged, and each pin has its strand and each strand its pin.
fn is_at_rest(state: &State) -> bool {
    let is_idle = ShardNumber::all().all(|shard| state.shard(shard).staged.is_empty());
    is_idle && Key::all().all(|key| is_key_at_rest(state, key))
}

fn is_key_at_rest(state: &State, key: Key) -> bool {
    let owner = state.registry.pins[key.0].map(|pin| pin.shard);
    ShardNumber::all().all(|shard| {
        let row = state.row(shard, key);
        let is_open = row.is_some_and(|row| row.sealed.is_none());
        let is_waiting = state.leaders[shard.0].waiting[key.0] > 0;
        !is_waiting && is_open == row.is_some() && is_open == (owner == Some(shard))
    })
}

//! The protocol of pins, explored exhaustively: two shards, one registry group, and every order in
//! which messages between them can be late, come twice or get lost, within bounds. So are the marks
//! and rewinds of lanes, because a move takes them along.
//!
//! The promises are judged by an onlooker, who sees only publishes, deliveries and acks; that there
//! is one owner and that nothing is lost is judged by the rows. Nothing is wedged if, from each
//! state on, things take their course without faults and every key comes to rest.
//!
//! A model, not the engine: it is small enough that every interleaving can be tried. For each rule
//! of the protocol there is a variant that lacks it, and a test that the loss is noticed.
//!
//! A wider exploration takes minutes and 1.4 GB of memory:
//! `cargo test -p orderly-sim --test pins -- --ignored --nocapture`

mod bounds;
mod delivery;
mod flaws;
mod missed;
mod network;
mod properties;
mod registry;
mod settle;
mod shard;
mod state;
mod steps;
mod strand;
mod transfer;
mod turn;
mod witness;
mod words;

use std::collections::BTreeSet;
use std::time::Instant;

use stateright::{Checker, HasDiscoveries, Model, Property};

use bounds::Bounds;
use flaws::Flaws;
use missed::{MISSED, Missed};
use state::State;
use steps::Step;

const THREADS: usize = 2;

/// The protocol within bounds, with one rule turned off or none.
#[derive(Clone, Copy, Debug)]
struct PinModel {
    bounds: Bounds,
    flaws: Flaws,
}

impl Model for PinModel {
    type State = State;
    type Action = Step;

    fn init_states(&self) -> Vec<State> {
        vec![State::new(self.bounds)]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Step>) {
        steps::steps(state, self.flaws, actions);
    }

    fn next_state(&self, state: &State, step: Step) -> Option<State> {
        Some(steps::take(state, self.flaws, step))
    }

    fn properties(&self) -> Vec<Property<Self>> {
        properties::properties(&self.bounds)
    }
}

/// Tries everything that can happen within bounds.
fn assert_holds(bounds: Bounds) {
    let flaws = Flaws(None);
    let started = Instant::now();
    let checker = PinModel { bounds, flaws }.checker().threads(THREADS);
    let checker = checker
        .finish_when(HasDiscoveries::AnyFailures)
        .spawn_bfs()
        .join();
    let (states, depth) = (checker.unique_state_count(), checker.max_depth());
    eprintln!(
        "{states} states, {depth} deep, {:?}: {bounds:?}",
        started.elapsed()
    );
    checker.assert_properties();
}

/// Whether the loss of a rule is noticed by the property that is said to notice it.
fn is_noticed(&(flaw, property, bounds): &Missed) -> bool {
    let flaws = Flaws(Some(flaw));
    let checker = PinModel { bounds, flaws }.checker().threads(THREADS);
    let wanted = HasDiscoveries::AllOf(BTreeSet::from([property]));
    let checker = checker.finish_when(wanted).spawn_bfs().join();
    let states = checker.unique_state_count();
    let path = checker.discovery(property);
    let steps = path.as_ref().map(|path| path.clone().into_actions().len());
    eprintln!("{flaw:?}: {property}: {steps:?} steps, {states} states");
    path.is_some()
}

#[test]
fn the_protocol_keeps_its_promises() {
    bounds::ALL.into_iter().for_each(assert_holds);
}

#[test]
fn every_rule_is_missed() {
    let unnoticed = MISSED.iter().filter(|missed| !is_noticed(missed));
    let unnoticed: Vec<_> = unnoticed.map(|(flaw, ..)| flaw).collect();
    assert!(unnoticed.is_empty(), "nothing notices {unnoticed:?}");
}

#[test]
#[ignore = "takes minutes and 1.4 GB of memory"]
fn the_protocol_keeps_its_promises_when_more_happens() {
    bounds::WIDE.into_iter().for_each(assert_holds);
}

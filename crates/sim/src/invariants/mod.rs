//! One checker for each promise. Each is an automaton that reads a history once, event by event,
//! and remembers as little as it can.

mod acks_hold;
mod at_least_once;
mod bounded;
mod cascade;
mod exactly_once;
mod growing_ids;
mod key_order;
mod no_lost_wake_up;

mod deliveries;

#[cfg(test)]
mod tests;

use std::fmt;

use crate::history::{Event, History};

/// A promise was broken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The promise, by number and name.
    pub promise: &'static str,
    /// What shows it.
    pub what: String,
    /// The place of the event in the history; its length for what was missing in the end.
    pub event: usize,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at event {}: {}", self.promise, self.event, self.what)
    }
}

/// Reads a history and says what breaks its promise.
pub(crate) trait Checker {
    /// The promise, by number and name.
    fn promise(&self) -> &'static str;

    /// Takes the next event; answers what is wrong with it.
    fn event(&mut self, event: &Event) -> Result<(), String>;

    /// The history ends, drained; answers what is missing.
    fn drained(&mut self) -> Result<(), String> {
        Ok(())
    }
}

fn checkers() -> Vec<Box<dyn Checker>> {
    vec![
        Box::new(key_order::KeyOrder::default()),
        Box::new(cascade::Cascade::default()),
        Box::new(at_least_once::AtLeastOnce::default()),
        Box::new(acks_hold::AcksHold::default()),
        Box::new(exactly_once::ExactlyOnce::default()),
        Box::new(growing_ids::GrowingIds::default()),
        Box::new(no_lost_wake_up::NoLostWakeUp::default()),
        Box::new(bounded::Bounded::default()),
    ]
}

/// Checks a history against every promise; answers the first violation of each.
#[must_use]
pub fn check(history: &History) -> Vec<Violation> {
    let violations = checkers()
        .into_iter()
        .filter_map(|mut checker| first_violation(&mut *checker, history));
    violations.collect()
}

fn first_violation(checker: &mut dyn Checker, history: &History) -> Option<Violation> {
    let promise = checker.promise();
    for (number, event) in history.events.iter().enumerate() {
        if let Err(what) = checker.event(event) {
            return Some(Violation {
                promise,
                what,
                event: number,
            });
        }
    }
    let missing = match history.drained {
        true => checker.drained().err(),
        false => None,
    };
    missing.map(|what| Violation {
        promise,
        what,
        event: history.events.len(),
    })
}

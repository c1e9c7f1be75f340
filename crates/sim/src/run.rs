//! One seed, from its beginning to its verdict.

use std::hash::Hasher;

use siphasher::sip::SipHasher13;

use crate::cluster::Cluster;
use crate::history::History;
use crate::invariants::{Violation, check};

/// What came out of a seed.
#[derive(Debug)]
pub struct Run {
    /// The promises that were broken; none in a good run.
    pub violations: Vec<Violation>,
    /// The same for the same seed, always: a hash of every event.
    pub trace: u64,
    /// What clients did and saw.
    pub history: History,
}

/// Runs a cluster from a seed for so many happenings, and then until all is acknowledged.
///
/// # Panics
/// When an invariant inside the engine does not hold, or its state can't be read.
#[must_use]
pub fn run(seed: u64, happenings: u64) -> Run {
    let history = Cluster::run(seed, happenings);
    let history = history.unwrap_or_else(|fault| panic!("seed {seed}: {fault}"));
    let mut hasher = SipHasher13::new();
    for event in &history.events {
        hasher.write(format!("{event:?}").as_bytes());
    }
    Run {
        violations: check(&history),
        trace: hasher.finish(),
        history,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_seed_twice_is_the_same_byte_for_byte() {
        let [first, second] = [run(3, 2_000), run(3, 2_000)];
        assert_eq!(first.trace, second.trace);
        assert_eq!(first.history.events, second.history.events);
        assert_ne!(first.trace, run(4, 2_000).trace);
    }
}

//! Random steps against a naive model that knows what was promised and nothing of how it is done.
//!
//! `ORDERLY_MODEL_SEEDS` says how many histories are played, `ORDERLY_MODEL_FIRST` with which seed
//! to begin. A failure prints its seed and the last steps.

#[path = "../dispatch/bench/mod.rs"]
#[expect(dead_code, reason = "the scenarios use all of it")]
mod bench;
mod chance;
mod history;
mod promises;

/// A number from the environment.
#[expect(
    clippy::disallowed_methods,
    reason = "how long a test runs is not a decision of the engine"
)]
fn setting(name: &str, default: u64) -> u64 {
    let value = std::env::var(name).ok();
    value.map_or(default, |value| value.parse().expect("a number"))
}

/// Histories that once broke a promise.
const FAILED_ONCE: [u64; 2] = [36_695, 51_635];

#[test]
fn histories_that_once_failed() {
    FAILED_ONCE.into_iter().for_each(history::play);
}

#[test]
fn every_promise_holds_in_random_histories() {
    let first = setting("ORDERLY_MODEL_FIRST", 1);
    for seed in first..first + setting("ORDERLY_MODEL_SEEDS", 300) {
        history::play(seed);
    }
}

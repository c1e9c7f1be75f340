//! What became of keys that were to move.

use std::time::Duration;

use proto::admin::KeyMove;
use proto::admin::key_move::Outcome;
use serde_json::{Value, json};
use tokio::time::Instant;
use tonic::{Code, Status};

use crate::cli::keys::Located;
use crate::cli::output::{Show, note, print_one};
use crate::cli::{Failure, Format};

/// Keys that are named where many were not moved.
const NAMED_MAX: usize = 10;
/// Between two words on how far it is, in keys.
const SAID_EVERY: usize = 100;

/// All that was said of the keys.
pub(super) struct Report {
    began: Instant,
    expected: usize,
    moves: Vec<(String, KeyMove)>,
}

impl Default for Report {
    fn default() -> Self {
        Report {
            began: Instant::now(),
            expected: 0,
            moves: Vec::new(),
        }
    }
}

impl Report {
    /// So many more keys are to move.
    pub(super) fn expect(&mut self, keys: usize) {
        self.expected += keys;
    }

    /// One of them has, or has not.
    pub(super) fn add(&mut self, name: String, done: KeyMove) {
        self.moves.push((name, done));
    }

    pub(super) fn is_of_many(&self) -> bool {
        self.expected > 1
    }

    /// How far it is, not too often.
    pub(super) fn progress(&self) -> String {
        let done = match self.moves.len() {
            all if all == self.expected => all,
            some => some / SAID_EVERY * SAID_EVERY,
        };
        format!("{done} of {} keys", self.expected)
    }

    /// Prints what became of the only key, as of any that is looked for.
    pub(super) fn print_only(self, output: Format) -> Result<(), Failure> {
        let Some((name, done)) = self.moves.into_iter().next() else {
            return Err(Failure::Check("the node did not say what it did".into()));
        };
        let outcome = done.outcome();
        let Some(found) = done.key else {
            let why = format!("key \"{name}\" was not moved: {}", done.error);
            return Err(Status::new(Code::from_i32(done.code), why).into());
        };
        match outcome {
            Outcome::AlreadyThere => Err(Status::failed_precondition(format!(
                "key \"{name}\" was not moved: it is in {} in region \"{}\" already",
                found.shard, found.region
            ))
            .into()),
            outcome => {
                if outcome == Outcome::Pinned {
                    note(
                        "the key was not pinned, and nothing of it stored: it is pinned there now",
                    );
                }
                let took = Duration::from_micros(done.took_us);
                let key = Located {
                    key: name,
                    found,
                    leader: String::new(),
                };
                print_one(output, &Moved { key, outcome, took });
                Ok(())
            }
        }
    }

    /// Prints what became of many.
    ///
    /// # Errors
    /// [`Failure::Check`] unless all are where they should be.
    pub(super) fn print(&self, output: Format) -> Result<(), Failure> {
        let summary = Summary::of(self);
        print_one(output, &summary);
        match summary.not_moved.len() {
            0 => Ok(()),
            count => {
                for (name, why) in summary.not_moved.iter().take(NAMED_MAX) {
                    note(&format!("{name}: {why}"));
                }
                Err(Failure::Check(format!(
                    "{count} of {} keys were not moved: run the command again, which leaves those \
                     that are there",
                    self.expected
                )))
            }
        }
    }
}

/// A key that has moved.
struct Moved {
    key: Located,
    outcome: Outcome,
    took: Duration,
}

impl Show for Moved {
    const COLUMNS: &'static [&'static str] =
        &["KEY", "TOPIC", "HASH", "SHARD", "REGION", "EPOCH", "TOOK"];

    fn cells(&self) -> Vec<String> {
        let mut cells = self.key.cells();
        cells.pop();
        cells.push(millis(self.took));
        cells
    }

    fn json(&self) -> Value {
        let mut json = self.key.found.json();
        json["key"] = self.key.key.clone().into();
        json["outcome"] = word(self.outcome).into();
        json["tookMs"] = in_millis(self.took).into();
        json
    }
}

/// What became of many keys.
struct Summary {
    keys: usize,
    moved: usize,
    pinned: usize,
    already_there: usize,
    not_moved: Vec<(String, String)>,
    /// All of it.
    took: Duration,
    /// Of half, of 99 in 100, and of all that moved.
    p50: Duration,
    p99: Duration,
    max: Duration,
}

impl Summary {
    fn of(report: &Report) -> Self {
        let count = |outcome| {
            let moves = report.moves.iter();
            moves.filter(|(_, done)| done.outcome() == outcome).count()
        };
        let took = |(_, done): &(String, KeyMove)| {
            (done.outcome() == Outcome::Moved).then(|| Duration::from_micros(done.took_us))
        };
        let mut times: Vec<Duration> = report.moves.iter().filter_map(took).collect();
        times.sort_unstable();
        let not_moved = |(name, done): &(String, KeyMove)| {
            let is_there = done.key.is_some();
            (!is_there).then(|| (name.clone(), done.error.clone()))
        };
        Summary {
            keys: report.expected,
            moved: count(Outcome::Moved),
            pinned: count(Outcome::Pinned),
            already_there: count(Outcome::AlreadyThere),
            not_moved: report.moves.iter().filter_map(not_moved).collect(),
            took: report.began.elapsed(),
            p50: at_rank(&times, 50),
            p99: at_rank(&times, 99),
            max: at_rank(&times, 100),
        }
    }
}

impl Show for Summary {
    const COLUMNS: &'static [&'static str] = &[
        "KEYS",
        "MOVED",
        "PINNED",
        "ALREADY THERE",
        "NOT MOVED",
        "TOOK",
        "A MOVE P50",
        "A MOVE P99",
        "A MOVE MAX",
    ];

    fn cells(&self) -> Vec<String> {
        vec![
            self.keys.to_string(),
            self.moved.to_string(),
            self.pinned.to_string(),
            self.already_there.to_string(),
            self.not_moved.len().to_string(),
            millis(self.took),
            millis(self.p50),
            millis(self.p99),
            millis(self.max),
        ]
    }

    fn json(&self) -> Value {
        let failure = |(key, error): &(String, String)| json!({ "key": key, "error": error });
        json!({
            "keys": self.keys,
            "moved": self.moved,
            "pinned": self.pinned,
            "alreadyThere": self.already_there,
            "notMoved": self.not_moved.iter().map(failure).collect::<Vec<_>>(),
            "tookMs": in_millis(self.took),
            "moveMs": {
                "p50": in_millis(self.p50),
                "p99": in_millis(self.p99),
                "max": in_millis(self.max),
            },
        })
    }
}

/// The time within which so many of a hundred were done; zero where there are none. The times
/// are sorted.
fn at_rank(times: &[Duration], percent: usize) -> Duration {
    let rank = (times.len() * percent).div_ceil(100);
    let at = rank.checked_sub(1).and_then(|place| times.get(place));
    at.copied().unwrap_or_default()
}

fn word(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Unspecified => "unknown",
        Outcome::Moved => "moved",
        Outcome::Pinned => "pinned",
        Outcome::AlreadyThere => "alreadyThere",
        Outcome::NotMoved => "notMoved",
    }
}

fn in_millis(time: Duration) -> f64 {
    time.as_micros() as f64 / 1_000.0
}

fn millis(time: Duration) -> String {
    format!("{:.0} ms", in_millis(time))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rank_is_a_time_that_was_measured() {
        let times: Vec<Duration> = (1..=200).map(Duration::from_millis).collect();
        assert_eq!(at_rank(&times, 50), Duration::from_millis(100));
        assert_eq!(at_rank(&times, 99), Duration::from_millis(198));
        assert_eq!(at_rank(&times, 100), Duration::from_millis(200));
        assert_eq!(at_rank(&times[..1], 50), Duration::from_millis(1));
        assert_eq!(at_rank(&[], 99), Duration::ZERO);
    }
}

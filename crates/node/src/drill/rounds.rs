//! A drill that was repeated: what its rounds say together.

use std::time::Duration;

use serde_json::{Value, json};

use super::verdict::Verdict;
use crate::cli::output::Show;

/// The verdicts of all rounds that were done, at least one.
pub(super) struct Rounds {
    /// How many were wanted.
    wanted: usize,
    done: Vec<Verdict>,
    /// Why the round after those could not be done.
    broken_off: Option<String>,
}

/// How long the service was away, over the rounds in which it came back.
struct Spread {
    median: Duration,
    p99: Duration,
    longest: Duration,
    /// In how many it came back.
    rounds: usize,
}

impl Rounds {
    /// So many rounds, of which none is done yet.
    pub(super) fn of(wanted: usize) -> Self {
        Rounds {
            wanted,
            done: Vec::new(),
            broken_off: None,
        }
    }

    /// A round is done.
    pub(super) fn add(&mut self, verdict: Verdict) {
        self.done.push(verdict);
    }

    /// The next round could not be done.
    pub(super) fn break_off(&mut self, why: String) {
        self.broken_off = Some(why);
    }

    /// Whether any round was done.
    pub(super) fn any(&self) -> bool {
        !self.done.is_empty()
    }

    /// The verdict of the only round that was wanted.
    pub(super) fn only(&self) -> Option<&Verdict> {
        match &self.done[..] {
            [only] if self.wanted == 1 => Some(only),
            _ => None,
        }
    }

    /// Whether every round was done, and passed.
    pub(super) fn pass(&self) -> bool {
        self.done.len() == self.wanted && self.failed().is_empty()
    }

    /// The numbers of the rounds that failed, counted from one.
    fn failed(&self) -> Vec<usize> {
        let numbered = (1..).zip(&self.done);
        let failed = numbered.filter(|(_, round)| !round.passes());
        failed.map(|(number, _)| number).collect()
    }

    fn sum(&self, of: impl Fn(&Verdict) -> usize) -> usize {
        self.done.iter().map(of).sum()
    }

    fn slowest_publish(&self) -> Duration {
        let slowest = self.done.iter().map(|round| round.slowest_publish);
        slowest.max().unwrap_or_default()
    }

    /// `None` if the service came back in none of the rounds.
    fn spread(&self, of: impl Fn(&Verdict) -> Option<Duration>) -> Option<Spread> {
        let mut times: Vec<Duration> = self.done.iter().filter_map(of).collect();
        times.sort_unstable();
        let at = |percent: usize| times[(times.len() * percent / 100).min(times.len() - 1)];
        let longest = *times.last()?;
        Some(Spread {
            median: at(50),
            p99: at(99),
            longest,
            rounds: times.len(),
        })
    }

    fn spread_cell(&self, of: impl Fn(&Verdict) -> Option<Duration>) -> String {
        let Some(spread) = self.spread(of) else {
            return "never".to_owned();
        };
        let (median, p99) = (spread.median.as_millis(), spread.p99.as_millis());
        let times = format!(
            "median {median}, p99 {p99}, longest {} ms",
            spread.longest.as_millis()
        );
        match self.done.len() - spread.rounds {
            0 => times,
            without => format!("{times}, never in {without}"),
        }
    }

    fn failed_cell(&self) -> String {
        let failed = self.failed().into_iter().map(|number| number.to_string());
        let broken_off = self.broken_off.as_ref();
        let broken_off = broken_off.map(|why| format!("{}: {why}", self.done.len() + 1));
        let all: Vec<String> = failed.chain(broken_off).collect();
        match all.is_empty() {
            true => "-".to_owned(),
            false => all.join(", "),
        }
    }

    fn word(&self) -> &'static str {
        match self.pass() {
            true => "pass",
            false => "fail",
        }
    }
}

impl Show for Rounds {
    const COLUMNS: &'static [&'static str] = &[
        "DRILL",
        "ROUNDS",
        "FAILED_ROUNDS",
        "PUBLISHED",
        "LOST",
        "ORDER_VIOLATIONS",
        "EXACTLY_ONCE_VIOLATIONS",
        "STORED_TWICE",
        "DUPLICATES",
        "FAILED",
        "SLOWEST_PUBLISH",
        "RTO_PUBLISH",
        "RTO_DELIVERY",
        "RTO_EXACTLY_ONCE",
        "RTO_EXACTLY_ONCE_FREE",
        "VERDICT",
    ];

    fn cells(&self) -> Vec<String> {
        vec![
            self.done[0].drill.clone(),
            format!("{} of {}", self.done.len(), self.wanted),
            self.failed_cell(),
            self.sum(|round| round.published).to_string(),
            self.sum(|round| round.lost).to_string(),
            self.sum(|round| round.order_violations).to_string(),
            self.sum(|round| round.exactly_once_violations).to_string(),
            self.sum(|round| round.stored_twice).to_string(),
            self.sum(|round| round.duplicates).to_string(),
            self.sum(|round| round.failed).to_string(),
            format!("{} ms", self.slowest_publish().as_millis()),
            self.spread_cell(|round| round.rto_publish),
            self.spread_cell(|round| round.rto_at_least_once),
            self.spread_cell(|round| round.rto_exactly_once),
            self.spread_cell(|round| round.rto_exactly_once_free),
            self.word().to_owned(),
        ]
    }

    fn json(&self) -> Value {
        json!({
            "drill": self.done[0].drill,
            "rounds": self.done.len(),
            "rounds_wanted": self.wanted,
            "failed_rounds": self.failed(),
            "broken_off": self.broken_off,
            "published": self.sum(|round| round.published),
            "delivered": self.sum(|round| round.delivered),
            "lost": self.sum(|round| round.lost),
            "order_violations": self.sum(|round| round.order_violations),
            "exactly_once_violations": self.sum(|round| round.exactly_once_violations),
            "stored_twice": self.sum(|round| round.stored_twice),
            "duplicates": self.sum(|round| round.duplicates),
            "failed_publishes": self.sum(|round| round.failed),
            "slowest_publish_ms": self.slowest_publish().as_millis(),
            "rto_publish_ms": spread_json(self.spread(|round| round.rto_publish)),
            "rto_delivery_ms": spread_json(self.spread(Verdict::rto_delivery)),
            "rto_delivery_at_least_once_ms": spread_json(self.spread(|round| round.rto_at_least_once)),
            "rto_delivery_exactly_once_ms": spread_json(self.spread(|round| round.rto_exactly_once)),
            "rto_delivery_exactly_once_free_ms":
                spread_json(self.spread(|round| round.rto_exactly_once_free)),
            "verdict": self.word(),
            "each": self.done.iter().map(Show::json).collect::<Vec<Value>>(),
        })
    }
}

fn spread_json(spread: Option<Spread>) -> Value {
    let spread = spread.map(|spread| {
        json!({
            "median": spread.median.as_millis(),
            "p99": spread.p99.as_millis(),
            "max": spread.longest.as_millis(),
            "rounds": spread.rounds,
        })
    });
    spread.unwrap_or(Value::Null)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round(rto_ms: Option<u64>) -> Verdict {
        Verdict {
            drill: "test".into(),
            published: 10,
            delivered: 20,
            lost: 0,
            order_violations: 0,
            exactly_once_violations: 0,
            stored_twice: 0,
            duplicates: 1,
            planned: false,
            failed: 0,
            slowest_publish: Duration::ZERO,
            rto_publish: rto_ms.map(Duration::from_millis),
            rto_at_least_once: rto_ms.map(Duration::from_millis),
            rto_exactly_once: rto_ms.map(Duration::from_millis),
            rto_exactly_once_free: None,
        }
    }

    fn rounds(wanted: usize, times: impl IntoIterator<Item = Option<u64>>) -> Rounds {
        let mut rounds = Rounds::of(wanted);
        times.into_iter().for_each(|time| rounds.add(round(time)));
        rounds
    }

    #[test]
    fn rounds_say_the_median_and_the_longest() {
        let rounds = rounds(30, (1..=30).map(Some));
        let json = rounds.json();
        assert_eq!(json["rto_publish_ms"]["median"], 16);
        assert_eq!(json["rto_publish_ms"]["max"], 30);
        assert_eq!(json["rto_publish_ms"]["p99"], 30);
        assert_eq!(json["duplicates"], 30);
        assert_eq!(json["failed_rounds"], json!([]));
        assert_eq!(json["each"][6]["rto_publish_ms"], 7);
        assert_eq!(json["verdict"], "pass");
    }

    #[test]
    fn one_round_that_fails_fails_the_drill_and_is_named() {
        let rounds = rounds(2, [Some(5), None]);
        assert!(!rounds.pass());
        let json = rounds.json();
        assert_eq!(json["failed_rounds"], json!([2]));
        assert_eq!(json["rto_delivery_ms"]["rounds"], 1);
        assert_eq!(json["rto_delivery_ms"]["max"], 5);
        assert_eq!(json["rto_delivery_exactly_once_free_ms"], Value::Null);
        let cells = rounds.cells().join(" | ");
        assert!(cells.contains("2 of 2 | 2 |"), "{cells}");
        assert!(cells.contains("longest 5 ms, never in 1"), "{cells}");
    }

    #[test]
    fn rounds_that_were_not_done_fail_the_drill_and_leave_the_others() {
        let mut rounds = rounds(3, [Some(5)]);
        rounds.break_off("no node is ready".into());
        assert!(!rounds.pass() && rounds.only().is_none());
        assert_eq!(rounds.json()["broken_off"], "no node is ready");
        assert_eq!(rounds.json()["rounds"], 1);
        let cells = rounds.cells().join(" | ");
        assert!(cells.contains("1 of 3 | 2: no node is ready"), "{cells}");
    }
}

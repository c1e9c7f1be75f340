//! A drill that was repeated: what its rounds say together.

use std::time::Duration;

use serde_json::{Value, json};

use super::verdict::Verdict;
use crate::cli::output::Show;

/// The verdicts of all rounds, at least one.
pub(super) struct Rounds(pub(super) Vec<Verdict>);

/// How long the service was away, over all rounds.
struct Spread {
    median: Duration,
    p99: Duration,
    longest: Duration,
}

impl Rounds {
    /// Whether every round passed.
    pub(super) fn pass(&self) -> bool {
        self.0.iter().all(Verdict::passes)
    }

    fn sum(&self, of: impl Fn(&Verdict) -> usize) -> usize {
        self.0.iter().map(of).sum()
    }

    fn slowest_publish(&self) -> Duration {
        let slowest = self.0.iter().map(|round| round.slowest_publish);
        slowest.max().unwrap_or_default()
    }

    /// `None` if the service did not come back in one of the rounds.
    fn spread(&self, of: impl Fn(&Verdict) -> Option<Duration>) -> Option<Spread> {
        let mut times: Vec<Duration> = self.0.iter().map(of).collect::<Option<_>>()?;
        times.sort_unstable();
        let at = |percent: usize| times[(times.len() * percent / 100).min(times.len() - 1)];
        Some(Spread {
            median: at(50),
            p99: at(99),
            longest: *times.last()?,
        })
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
        "VERDICT",
    ];

    fn cells(&self) -> Vec<String> {
        vec![
            self.0[0].drill.clone(),
            self.0.len().to_string(),
            self.sum(|round| round.published).to_string(),
            self.sum(|round| round.lost).to_string(),
            self.sum(|round| round.order_violations).to_string(),
            self.sum(|round| round.exactly_once_violations).to_string(),
            self.sum(|round| round.stored_twice).to_string(),
            self.sum(|round| round.duplicates).to_string(),
            self.sum(|round| round.failed).to_string(),
            format!("{} ms", self.slowest_publish().as_millis()),
            spread_cell(self.spread(|round| round.rto_publish)),
            spread_cell(self.spread(|round| round.rto_at_least_once)),
            spread_cell(self.spread(|round| round.rto_exactly_once)),
            self.word().to_owned(),
        ]
    }

    fn json(&self) -> Value {
        json!({
            "drill": self.0[0].drill,
            "rounds": self.0.len(),
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
            "verdict": self.word(),
        })
    }
}

fn spread_cell(spread: Option<Spread>) -> String {
    match spread {
        None => "never".to_owned(),
        Some(spread) => format!(
            "median {}, p99 {}, longest {} ms",
            spread.median.as_millis(),
            spread.p99.as_millis(),
            spread.longest.as_millis()
        ),
    }
}

fn spread_json(spread: Option<Spread>) -> Value {
    let spread = spread.map(|spread| {
        json!({
            "median": spread.median.as_millis(),
            "p99": spread.p99.as_millis(),
            "max": spread.longest.as_millis(),
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
        }
    }

    #[test]
    fn rounds_say_the_median_and_the_longest() {
        let rounds = Rounds((1..=30).map(|number| round(Some(number))).collect());
        let json = rounds.json();
        assert_eq!(json["rto_publish_ms"]["median"], 16);
        assert_eq!(json["rto_publish_ms"]["max"], 30);
        assert_eq!(json["rto_publish_ms"]["p99"], 30);
        assert_eq!(json["duplicates"], 30);
        assert_eq!(json["verdict"], "pass");
    }

    #[test]
    fn one_round_that_fails_fails_the_drill() {
        let rounds = Rounds(vec![round(Some(5)), round(None)]);
        assert!(!rounds.pass());
        assert_eq!(rounds.json()["rto_delivery_ms"], Value::Null);
    }
}

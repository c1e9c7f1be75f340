//! What a load answered.

use std::process::Output;

use serde_json::Value;

use super::row::Line;
use crate::bench::progress::grouped;
use crate::cli::Failure;

/// The exit code of a load that ran, and whose checks failed.
const CHECK_FAILED: i32 = 5;

/// The report of one load.
pub(crate) struct Outcome {
    arguments: String,
    report: Value,
}

/// One of the directions of a report.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Side {
    /// From publish to its answer.
    Published,
    /// From publish to delivery.
    Consumed,
}

impl Outcome {
    /// Reads what `orderly bench -o json` has printed.
    pub(crate) fn read(arguments: &str, output: &Output) -> Result<Self, Failure> {
        let code = output.status.code();
        if !output.status.success() && code != Some(CHECK_FAILED) {
            return Err(Failure::Check(format!(
                "orderly bench {arguments}: {}",
                output.status
            )));
        }
        let report = serde_json::from_slice(&output.stdout).map_err(|why| {
            Failure::Check(format!(
                "orderly bench {arguments} printed no report: {why}"
            ))
        })?;
        Ok(Outcome {
            arguments: arguments.to_owned(),
            report,
        })
    }

    /// A line of the table. A failed check stands in it.
    pub(crate) fn line(&self, work: &str, show: fn(&Self) -> String) -> Line {
        let mut orderly = show(self);
        let checks = &self.report["checks"];
        if checks["ok"] != Value::Bool(true) {
            orderly = format!("{orderly} **check failed: {checks}**");
        }
        let command = format!("orderly bench {}", self.arguments);
        Line {
            work: work.to_owned(),
            orderly,
            emulator: None,
            command,
        }
    }

    /// Messages a second.
    pub(crate) fn rate(&self, side: Side) -> f64 {
        self.side(side)["messagesPerSecond"].as_f64().unwrap_or(0.0)
    }

    /// Messages and megabytes a second.
    pub(crate) fn throughput(&self, side: Side) -> String {
        let rate = grouped(self.rate(side) as u64);
        let megabytes = self.side(side)["megabytesPerSecond"]
            .as_f64()
            .unwrap_or(0.0);
        format!("{rate} msg/s, {megabytes:.1} MB/s")
    }

    /// Calls a second, of one message each.
    pub(crate) fn calls(&self) -> String {
        format!("{} calls/s", grouped(self.rate(Side::Published) as u64))
    }

    /// The median and the 99th percentile.
    pub(crate) fn latency(&self, side: Side) -> String {
        let latency = &self.side(side)["latencyMilliseconds"];
        let at = |quantile: &str| latency[quantile].as_f64().unwrap_or(0.0);
        format!("p50 {:.2} ms, p99 {:.2} ms", at("p50"), at("p99"))
    }

    /// What the watched process has gained, for each of so many things.
    pub(crate) fn memory_each(&self, count: u64) -> String {
        let at = |place: usize| self.report["memoryBytes"][place].as_f64().unwrap_or(0.0);
        let gained = at(1) - at(0);
        format!(
            "{:.0} bytes each ({:.1} MB for {})",
            gained / count as f64,
            gained / 1e6,
            grouped(count)
        )
    }

    fn side(&self, side: Side) -> &Value {
        match side {
            Side::Published => &self.report["published"],
            Side::Consumed => &self.report["consumed"],
        }
    }
}

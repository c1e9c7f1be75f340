//! What a run says at its end.

use serde_json::{Map, Value, json};

use super::account::Summary;
use super::meter::Reading;
use super::progress::grouped;
use crate::cli::Failure;
use crate::cli::output::{Format, print_line};

/// The names of [`Reading::latencies`].
const QUANTILES: [&str; 5] = ["p50", "p90", "p99", "p99.9", "max"];

/// The result of one run.
pub(crate) struct Report {
    /// Bytes of one message's data.
    pub(crate) size: usize,
    /// The publishing side.
    pub(crate) published: Reading,
    /// The consuming side, if there was one; a backlog's latencies say nothing.
    pub(crate) consumed: Option<Reading>,
    /// Whether the consumed messages lay ready.
    pub(crate) backlog: bool,
    /// Whether repeated deliveries after an ack are a fault.
    pub(crate) exactly_once: bool,
    /// What became of each message.
    pub(crate) account: Summary,
    /// How often a key went on without one of its messages; nothing if order was not checked.
    pub(crate) gaps: Option<u64>,
    /// Publishes that failed and were made again.
    pub(crate) retries: u64,
    /// Requests of acks that failed for the moment and were made again.
    pub(crate) ack_retries: u64,
    /// Acks refused for good.
    pub(crate) refused_acks: u64,
    /// Requests of an open loop that were due, and not sent at the end.
    pub(crate) unsent: u64,
    /// Bytes of memory that the watched process had before the run and at its end.
    pub(crate) memory: Option<[u64; 2]>,
}

impl Report {
    /// Prints it.
    pub(crate) fn print(&self, output: Format) {
        match output {
            Format::Json => print_line(&format!("{:#}", self.json())),
            Format::Table => self.lines().iter().for_each(|line| print_line(line)),
        }
    }

    /// Fails if a promise was broken.
    ///
    /// # Errors
    /// [`Failure::Check`], which names each broken promise.
    pub(crate) fn verdict(&self) -> Result<(), Failure> {
        let broken = self.broken();
        if broken.is_empty() {
            Ok(())
        } else {
            Err(Failure::Check(broken.join("; ")))
        }
    }

    fn broken(&self) -> Vec<String> {
        let mut broken = Vec::new();
        let lost = if self.consumed.is_some() {
            self.account.missing
        } else {
            0
        };
        if lost > 0 {
            broken.push(format!(
                "{} confirmed messages did not arrive in time",
                grouped(lost)
            ));
        }
        if let Some(gaps @ 1..) = self.gaps {
            let gaps = grouped(gaps);
            broken.push(format!(
                "a key went on without one of its messages {gaps} times"
            ));
        }
        if self.exactly_once && self.account.repeated_after_ack > 0 {
            let count = grouped(self.account.repeated_after_ack);
            broken.push(format!(
                "{count} messages came again after their ack was answered"
            ));
        }
        broken
    }

    fn lines(&self) -> Vec<String> {
        let mut lines = vec![self.direction("published", &self.published)];
        lines.push(latency_line("  answered after", &self.published));
        if let Some(consumed) = &self.consumed {
            lines.push(self.direction("consumed", consumed));
            if !self.backlog {
                lines.push(latency_line("  end to end", consumed));
            }
        }
        let repeated = grouped(self.account.repeated);
        let retries = grouped(self.retries);
        let ack_retries = grouped(self.ack_retries);
        let order = match self.gaps {
            None => "not checked".to_owned(),
            Some(gaps) => format!("{} gaps", grouped(gaps)),
        };
        lines.push(format!(
            "order: {order}; came again: {repeated}; retried: {retries}, of acks {ack_retries}"
        ));
        if self.unsent > 0 {
            let unsent = grouped(self.unsent);
            lines.push(format!(
                "{unsent} requests were due, and not sent yet at the end"
            ));
        }
        if let Some([before, after]) = self.memory {
            let [before, after] = [before, after].map(grouped);
            lines.push(format!(
                "memory of the watched process: {before} bytes, then {after}"
            ));
        }
        lines
    }

    fn direction(&self, name: &str, reading: &Reading) -> String {
        let messages = grouped(reading.messages);
        let rate = grouped(reading.rate() as u64);
        let seconds = reading.elapsed.as_secs_f64();
        let megabytes = self.megabytes(reading);
        format!("{name} {messages} messages in {seconds:.1} s: {rate}/s, {megabytes:.1} MB/s")
    }

    /// Millions of bytes of data a second.
    fn megabytes(&self, reading: &Reading) -> f64 {
        reading.rate() * self.size as f64 / 1e6
    }

    fn json(&self) -> Value {
        let consumed = self
            .consumed
            .as_ref()
            .map(|reading| self.reading_json(reading));
        json!({
            "published": self.reading_json(&self.published),
            "consumed": consumed,
            "checks": {
                "ok": self.broken().is_empty(),
                "confirmed": self.account.confirmed,
                "received": self.account.received,
                "missing": self.account.missing,
                "repeated": self.account.repeated,
                "repeatedAfterAck": self.account.repeated_after_ack,
                "gaps": self.gaps,
            },
            "retries": self.retries,
            "ackRetries": self.ack_retries,
            "refusedAcks": self.refused_acks,
            "unsent": self.unsent,
            "memoryBytes": self.memory,
        })
    }

    fn reading_json(&self, reading: &Reading) -> Value {
        let latencies = QUANTILES.iter().zip(reading.latencies);
        let latencies = latencies.map(|(name, latency)| {
            let milliseconds = latency.as_micros() as f64 / 1e3;
            ((*name).to_owned(), json!(milliseconds))
        });
        json!({
            "messages": reading.messages,
            "seconds": reading.elapsed.as_secs_f64(),
            "messagesPerSecond": reading.rate(),
            "megabytesPerSecond": self.megabytes(reading),
            "latencyMilliseconds": Map::from_iter(latencies),
        })
    }
}

fn latency_line(name: &str, reading: &Reading) -> String {
    let latencies = QUANTILES.iter().zip(reading.latencies);
    let texts = latencies.map(|(name, latency)| {
        let milliseconds = latency.as_micros() as f64 / 1e3;
        format!("{name} {milliseconds:.2} ms")
    });
    format!("{name}: {}", texts.collect::<Vec<_>>().join(", "))
}

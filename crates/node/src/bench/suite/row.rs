//! The rows of the table, as data.

use super::lab::Lab;
use super::{memory, recovery, throughput};
use crate::cli::Failure;

/// Something that is measured.
pub(crate) struct Row {
    /// What `--only` looks at.
    pub(crate) name: &'static str,
    /// What we want to reach on a machine with two cores, the load generator included.
    pub(crate) target: &'static str,
    /// Measures it, against fresh processes.
    pub(crate) measure: fn(&Lab) -> Result<Vec<Line>, Failure>,
}

/// One line of the table.
pub(crate) struct Line {
    /// What was done.
    pub(crate) work: String,
    /// What Orderly made of it.
    pub(crate) orderly: String,
    /// What Google's emulator made of it, if it was asked.
    pub(crate) emulator: Option<String>,
    /// How to do it again.
    pub(crate) command: String,
}

/// All rows, in the order of the table.
pub(crate) const ROWS: [Row; 13] = [
    Row {
        name: "publish",
        target: "60,000 msg/s; at half of it p50 2 ms, p99 15 ms",
        measure: throughput::publish,
    },
    Row {
        name: "ordered end to end",
        target: "40,000 msg/s; at half of it p50 3 ms, p99 15 ms",
        measure: throughput::end_to_end,
    },
    Row {
        name: "single messages",
        target: "a tenth of the emulator's end-to-end p99",
        measure: throughput::single_messages,
    },
    Row {
        name: "unique keys",
        target: "half of 1,000 keys",
        measure: throughput::unique_keys,
    },
    Row {
        name: "hot key",
        target: "20 MB/s",
        measure: throughput::hot_key,
    },
    Row {
        name: "stuck key",
        target: "the other keys' p99 at most 1.2 of that without",
        measure: throughput::stuck_key,
    },
    Row {
        name: "catch-up",
        target: "0.8 of the live rate",
        measure: throughput::catch_up,
    },
    Row {
        name: "many subscriptions",
        target: "0.9 of one subscription",
        measure: throughput::many_subscriptions,
    },
    Row {
        name: "memory of idle keys",
        target: "200 bytes",
        measure: memory::idle_keys,
    },
    Row {
        name: "memory of idle subscriptions",
        target: "small",
        measure: memory::idle_subscriptions,
    },
    Row {
        name: "memory of stuck keys",
        target: "small",
        measure: memory::stuck_keys,
    },
    Row {
        name: "start",
        target: "300 ms",
        measure: recovery::start,
    },
    Row {
        name: "recovery",
        target: "2 s",
        measure: recovery::recover,
    },
];

impl Line {
    /// A row that was not measured.
    pub(crate) fn failed(work: &str, failure: &Failure) -> Self {
        Line {
            work: work.to_owned(),
            orderly: format!("failed: {failure}"),
            emulator: None,
            command: String::new(),
        }
    }
}

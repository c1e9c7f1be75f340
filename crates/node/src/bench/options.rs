//! What load: the options of `orderly bench`.

use std::time::Duration;

use clap::Args;
use model::limits::{PUBLISH_MESSAGES_MAX, PUBLISH_REQUEST_BYTES_MAX};

use super::payload::STAMP_BYTES;
use crate::cli::Failure;
use crate::cli::resource::{key_value, seconds};

/// Keys that a load may spread over: each costs about 100 bytes here.
const KEYS_MAX: usize = 10_000_000;

/// The load.
#[derive(Clone, Debug, Args)]
pub(crate) struct Options {
    /// Clients that publish, with a connection each.
    #[arg(long, default_value_t = 2, value_name = "COUNT")]
    pub(crate) publishers: usize,
    /// Publish requests that are on their way at once, over all publishers.
    #[arg(long, default_value_t = 64, value_name = "COUNT")]
    pub(crate) in_flight: usize,
    /// Open loop: so many messages a second, whatever the node does. Latency counts from the moment
    /// at which a message should have been sent. Without it, closed loop: as fast as answers come.
    #[arg(long, value_name = "MESSAGES")]
    pub(crate) rate: Option<u64>,
    /// Messages in one publish request; all have the same key.
    #[arg(long, default_value_t = 1, value_name = "COUNT")]
    pub(crate) batch: usize,
    /// Bytes of one message's data, which no compression makes smaller.
    #[arg(long, default_value_t = 1_000, value_name = "BYTES")]
    pub(crate) size: usize,
    /// Ordering keys; 0 publishes without a key.
    #[arg(long, default_value_t = 1_000, value_name = "COUNT")]
    pub(crate) keys: usize,
    /// Skew of the keys: the exponent of a Zipf distribution. 0 is uniform, 1 is like words in text.
    #[arg(long, default_value_t = 0.0, value_name = "EXPONENT")]
    pub(crate) skew: f64,
    /// A new ordering key for each request.
    #[arg(long)]
    pub(crate) unique_keys: bool,
    /// Labels of the topic, as `orderly-survival=zone`, which keeps its messages in one region.
    #[arg(long, value_parser = key_value, value_delimiter = ',', value_name = "KEY=VALUE")]
    pub(crate) topic_labels: Vec<(String, String)>,
    /// Publishers use these nodes in turn, instead of the one of `--endpoint`.
    #[arg(long, value_delimiter = ',', value_name = "HOST:PORT")]
    pub(crate) publish_through: Vec<String>,
    /// Consumers use these nodes in turn, instead of the one of `--endpoint`.
    #[arg(long, value_delimiter = ',', value_name = "HOST:PORT")]
    pub(crate) consume_through: Vec<String>,
    /// Asks for the topic instead of publishing to it, to see what a call costs by itself. Each call
    /// counts as a batch.
    #[arg(long, requires = "no_consume")]
    pub(crate) get_topic: bool,

    /// StreamingPull streams on the subscription, with a connection each.
    #[arg(long, default_value_t = 1, value_name = "COUNT")]
    pub(crate) consumers: usize,
    /// Messages that one stream may have outstanding.
    #[arg(long, default_value_t = 10_000, value_name = "COUNT")]
    pub(crate) outstanding: u32,
    /// How long an ack may wait for others to share its request, in milliseconds.
    #[arg(long, default_value_t = 10, value_name = "MS")]
    pub(crate) ack_wait: u64,
    /// The subscription exists, but nobody pulls from it.
    #[arg(long)]
    pub(crate) no_consume: bool,
    /// Consumers receive, and never acknowledge.
    #[arg(long, conflicts_with = "no_consume")]
    pub(crate) no_ack: bool,
    /// So many of the keys are stuck: consumers receive their messages, never acknowledge one, and
    /// leave them out of the latencies.
    #[arg(long, default_value_t = 0, value_name = "COUNT", conflicts_with_all = ["no_consume", "unique_keys"])]
    pub(crate) stuck_keys: u64,
    /// Consumers start only when all is published.
    #[arg(long, conflicts_with = "no_consume")]
    pub(crate) backlog: bool,
    /// The subscription keeps no order, and order is not checked.
    #[arg(long)]
    pub(crate) unordered: bool,
    /// The subscription has exactly-once delivery.
    #[arg(long)]
    pub(crate) exactly_once: bool,
    /// Further subscriptions of the topic, from which nobody pulls.
    #[arg(long, default_value_t = 0, value_name = "COUNT")]
    pub(crate) idle_subscriptions: usize,

    /// How long is measured.
    #[arg(long, default_value = "10s", value_parser = seconds)]
    duration: i32,
    /// How long the load runs before that.
    #[arg(long, default_value = "2s", value_parser = seconds)]
    warm_up: i32,
    /// Ends after so many messages instead, all of them measured.
    #[arg(long, value_name = "MESSAGES", conflicts_with_all = ["duration", "warm_up"])]
    pub(crate) count: Option<u64>,
    /// How long consumers may take, after the last publish, to receive all of it.
    #[arg(long, default_value = "60s", value_parser = seconds)]
    drain: i32,
    /// Leaves topic and subscriptions as they are at the end.
    #[arg(long)]
    pub(crate) keep: bool,
    /// Also tells how much memory that process of this machine has gained, from before the topic is
    /// created until all has been received. Waits both times until it has settled.
    #[arg(long, value_name = "PID")]
    pub(crate) watch_process: Option<u32>,
    /// Threads of this client.
    #[arg(long, default_value_t = 2, value_name = "COUNT")]
    pub(crate) threads: usize,
}

impl Options {
    /// Refuses what makes no sense before anything is created.
    pub(crate) fn check(&self) -> Result<(), Failure> {
        let refuse = |text: String| Err(Failure::Usage(text));
        if self.publishers == 0 || self.in_flight < self.publishers {
            return refuse("--publishers needs at least 1, and --in-flight as many".into());
        }
        if self.consumers == 0 || self.outstanding == 0 || self.threads == 0 {
            return refuse("--consumers, --outstanding and --threads need at least 1".into());
        }
        if !(1..=PUBLISH_MESSAGES_MAX).contains(&self.batch) {
            return refuse(format!("--batch is 1 to {PUBLISH_MESSAGES_MAX}"));
        }
        if self.size < STAMP_BYTES {
            return refuse(format!(
                "--size needs {STAMP_BYTES} bytes for what is checked"
            ));
        }
        if self.size.saturating_mul(self.batch) > PUBLISH_REQUEST_BYTES_MAX {
            return refuse(format!(
                "a request has {PUBLISH_REQUEST_BYTES_MAX} bytes at most"
            ));
        }
        if self.keys > KEYS_MAX {
            return refuse(format!("--keys is 0 to {KEYS_MAX}"));
        }
        if !self.skew.is_finite() || self.skew < 0.0 {
            return refuse("--skew is 0 or more".into());
        }
        if self.rate == Some(0) {
            return refuse("--rate needs at least 1".into());
        }
        Ok(())
    }

    /// How long the load runs, with its warm-up; without end when messages are counted.
    pub(crate) fn length(&self) -> Option<Duration> {
        self.count
            .is_none()
            .then(|| self.warm_up() + whole(self.duration))
    }

    /// How long the load runs before it is measured.
    pub(crate) fn warm_up(&self) -> Duration {
        match self.count {
            Some(_) => Duration::ZERO,
            None => whole(self.warm_up),
        }
    }

    /// How long consumers may take after the last publish.
    pub(crate) fn drain(&self) -> Duration {
        whole(self.drain)
    }

    /// Publish requests in all, if messages are counted.
    pub(crate) fn requests(&self) -> u64 {
        self.count
            .map_or(u64::MAX, |count| count.div_ceil(self.batch as u64))
    }

    /// The time between two requests of an open loop.
    pub(crate) fn interval(&self) -> Option<Duration> {
        self.rate
            .map(|rate| Duration::from_secs_f64(self.batch as f64 / rate as f64))
    }

    /// Whether the order of each key is checked.
    pub(crate) fn checks_order(&self) -> bool {
        !self.no_consume && !self.unordered && !self.unique_keys && self.keys > 0
    }
}

fn whole(seconds: i32) -> Duration {
    Duration::from_secs(u64::from(seconds.unsigned_abs()))
}

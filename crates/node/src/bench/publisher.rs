//! The publishing side: every place in flight is a task that publishes one request after another.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use proto::pubsub::publisher_client::PublisherClient;
use proto::pubsub::{GetTopicRequest, PublishRequest};
use rand::SeedableRng;
use rand::rngs::SmallRng;
use tonic::transport::Channel;

use super::account::Account;
use super::keys::{Keys, Picked};
use super::meter::Meter;
use super::options::Options;
use super::pace::{Pace, Turn};
use super::payload::{Payload, Stamp};
use crate::cli::Failure;
use crate::cli::session::is_passing;

/// The wait before a publish that failed is tried again.
const RETRY: Duration = Duration::from_millis(50);

/// What all publishing tasks share.
pub(crate) struct Publishing {
    topic: String,
    /// Whether calls only ask for the topic.
    asks: bool,
    batch: u64,
    keys: Keys,
    payload: Payload,
    start: Instant,
    account: Arc<Account>,
    pub(crate) pace: Arc<Pace>,
    pub(crate) meter: Meter,
    /// The number of the next message.
    numbers: AtomicU64,
    retries: AtomicU64,
}

impl Publishing {
    /// A load that begins at `start`.
    pub(crate) fn new(
        options: &Options,
        topic: String,
        account: Arc<Account>,
        start: Instant,
    ) -> Self {
        Publishing {
            topic,
            asks: options.get_topic,
            batch: options.batch as u64,
            keys: Keys::new(options),
            payload: Payload::new(options.size),
            start,
            account,
            pace: Pace::start(start, options.interval(), options.requests()),
            meter: Meter::new(start + options.warm_up()),
            numbers: AtomicU64::new(0),
            retries: AtomicU64::new(0),
        }
    }

    /// Publishes until the load ends.
    pub(crate) async fn work(
        self: Arc<Self>,
        mut client: PublisherClient<Channel>,
        seed: u64,
    ) -> Result<(), Failure> {
        let mut random = SmallRng::seed_from_u64(seed);
        while let Some(turn) = self.pace.turn().await {
            if self.asks {
                self.ask(&mut client, &turn).await?;
                continue;
            }
            let picked = self.keys.pick(&mut random, turn.request).await;
            self.publish(&mut client, &turn, picked).await?;
        }
        Ok(())
    }

    /// Publishes until it is answered OK, or the load has ended.
    async fn publish(
        &self,
        client: &mut PublisherClient<Channel>,
        turn: &Turn,
        mut picked: Picked<'_>,
    ) -> Result<(), Failure> {
        let intended = turn.intended.unwrap_or_else(Instant::now);
        loop {
            // A failed attempt may have been stored: its messages keep their numbers for ever.
            let first = self.numbers.fetch_add(self.batch, Ordering::Relaxed);
            let request = PublishRequest {
                topic: self.topic.clone(),
                messages: self
                    .payload
                    .encode(&picked.text, &self.stamps(first, &picked, intended)),
            };
            match client.publish(request).await {
                Ok(_) => {
                    self.account.confirm(first..first + self.batch);
                    let answered = [(intended, self.batch)].into_iter();
                    self.meter.record(Instant::now(), self.batch, answered);
                    if let Some(next) = &mut picked.next {
                        **next += self.batch;
                    }
                    return Ok(());
                }
                Err(status) if !is_passing(status.code()) => return Err(status.into()),
                Err(_) if self.pace.is_stopped() => return Ok(()),
                Err(_) => {
                    self.retries.fetch_add(1, Ordering::Relaxed);
                    tokio::time::sleep(RETRY).await;
                }
            }
        }
    }

    /// Makes a call that does next to nothing.
    async fn ask(&self, client: &mut PublisherClient<Channel>, turn: &Turn) -> Result<(), Failure> {
        let intended = turn.intended.unwrap_or_else(Instant::now);
        let topic = self.topic.clone();
        client.get_topic(GetTopicRequest { topic }).await?;
        let answered = [(intended, self.batch)].into_iter();
        self.meter.record(Instant::now(), self.batch, answered);
        Ok(())
    }

    fn stamps(&self, first: u64, picked: &Picked<'_>, intended: Instant) -> Vec<Stamp> {
        let next = picked.next.as_deref().copied().unwrap_or(0);
        let since = intended.saturating_duration_since(self.start).as_nanos();
        let intended = u64::try_from(since).expect("a run is shorter than 584 years");
        let stamp = |place| Stamp {
            number: first + place,
            key: picked.index,
            sequence: next + place,
            intended,
        };
        (0..self.batch).map(stamp).collect()
    }

    /// Attempts that failed and were made again.
    pub(crate) fn retries(&self) -> u64 {
        self.retries.load(Ordering::Relaxed)
    }
}

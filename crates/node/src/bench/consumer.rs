//! The consuming side: StreamingPull streams, whose messages are checked and acknowledged.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use proto::pubsub::StreamingPullRequest;
use proto::pubsub::subscriber_client::SubscriberClient;
use tokio::sync::{mpsc, watch};
use tonic::Status;
use tonic::transport::Channel;

use super::account::Account;
use super::acks::{self, Ack};
use super::delivery::Delivery;
use super::meter::Meter;
use super::options::Options;
use super::order::Order;
use super::payload::Stamp;
use super::resources::ACK_DEADLINE_SECONDS;
use crate::cli::Failure;
use crate::cli::session::{REOPEN, is_passing, requests};

/// Responses whose acks may wait behind the acks on their way.
const RESPONSES_WAITING_MAX: usize = 64;
/// Violations of order that are told one by one.
const GAPS_TOLD_MAX: u64 = 10;

/// What all streams share.
pub(crate) struct Consuming {
    pub(crate) subscription: String,
    pub(crate) ack_wait: Duration,
    outstanding: i64,
    acknowledges: bool,
    /// Keys below this number are stuck.
    stuck_keys: u64,
    start: Instant,
    pub(crate) account: Arc<Account>,
    pub(crate) meter: Meter,
    order: Option<Order>,
    refused_acks: AtomicU64,
    ack_retries: AtomicU64,
    /// Turns true when all has been received.
    done: watch::Receiver<bool>,
}

impl Consuming {
    /// Consumers of a load that begins at `start`.
    pub(crate) fn new(
        options: &Options,
        subscription: String,
        account: Arc<Account>,
        start: Instant,
        done: watch::Receiver<bool>,
    ) -> Self {
        Consuming {
            subscription,
            ack_wait: Duration::from_millis(options.ack_wait),
            outstanding: i64::from(options.outstanding),
            acknowledges: !options.no_ack,
            stuck_keys: options.stuck_keys,
            start,
            account,
            meter: Meter::new(start + options.warm_up()),
            order: options.checks_order().then(|| Order::new(options.keys)),
            refused_acks: AtomicU64::new(0),
            ack_retries: AtomicU64::new(0),
            done,
        }
    }

    /// Keeps one stream open until all has been received, and its acks are answered.
    pub(crate) async fn work(
        self: Arc<Self>,
        mut client: SubscriberClient<Channel>,
    ) -> Result<(), Failure> {
        let (acks, waiting) = mpsc::channel(RESPONSES_WAITING_MAX);
        let acknowledging = tokio::spawn(acks::work(Arc::clone(&self), client.clone(), waiting));
        let mut done = self.done.clone();
        loop {
            let ended = tokio::select! {
                _ = done.wait_for(|&done| done) => break,
                ended = self.stream(&mut client, &acks) => ended,
            };
            match ended {
                Err(status) if !is_passing(status.code()) => return Err(status.into()),
                _ => tokio::time::sleep(REOPEN).await,
            }
        }
        drop(acks);
        acknowledging
            .await
            .expect("the acknowledging task does not panic");
        Ok(())
    }

    async fn stream(
        &self,
        client: &mut SubscriberClient<Channel>,
        acks: &mpsc::Sender<Vec<Ack>>,
    ) -> Result<(), Status> {
        let first = StreamingPullRequest {
            subscription: self.subscription.clone(),
            stream_ack_deadline_seconds: ACK_DEADLINE_SECONDS,
            max_outstanding_messages: self.outstanding,
            ..StreamingPullRequest::default()
        };
        let mut responses = client.streaming_pull(requests(first)).await?.into_inner();
        while let Some(response) = responses.message().await? {
            if response.received_messages.is_empty() {
                continue;
            }
            let received = self.receive(response.received_messages)?;
            if self.acknowledges && acks.send(received).await.is_err() {
                break;
            }
        }
        Ok(())
    }

    /// Measures and checks the messages of one response.
    fn receive(&self, encoded: Vec<Bytes>) -> Result<Vec<Ack>, Status> {
        let now = Instant::now();
        let mut stamps = Vec::with_capacity(encoded.len());
        let mut acks = Vec::with_capacity(encoded.len());
        for encoded in encoded {
            let (stamp, delivery) = Delivery::read(encoded)?;
            if self.goes_on(&stamp) {
                acks.push(Ack {
                    id: delivery.ack_id,
                    number: stamp.number,
                });
            }
            stamps.push(stamp);
        }
        let new = self
            .account
            .receive(stamps.iter().map(|stamp| stamp.number));
        let intended = |stamp: &Stamp| (self.start + Duration::from_nanos(stamp.intended), 1);
        let going_on = stamps.iter().filter(|stamp| self.goes_on(stamp));
        self.meter.record(now, new, going_on.map(intended));
        if let Some(order) = &self.order {
            stamps.iter().for_each(|stamp| check(order, stamp));
        }
        Ok(acks)
    }

    /// Whether a message's key is not stuck.
    fn goes_on(&self, stamp: &Stamp) -> bool {
        stamp.key >= self.stuck_keys
    }

    /// Acks were refused for good; their messages come again.
    pub(crate) fn refuse_acks(&self, count: usize) {
        self.refused_acks.fetch_add(count as u64, Ordering::Relaxed);
    }

    /// How many acks were refused for good.
    pub(crate) fn refused_acks(&self) -> u64 {
        self.refused_acks.load(Ordering::Relaxed)
    }

    /// A request of acks is made again, since it failed for the moment. The first one is told.
    pub(crate) fn retry_acks(&self, why: &Status) {
        if self.ack_retries.fetch_add(1, Ordering::Relaxed) == 0 {
            eprintln!("acks are tried again: {}", why.message());
        }
    }

    /// How often requests of acks were made again.
    pub(crate) fn ack_retries(&self) -> u64 {
        self.ack_retries.load(Ordering::Relaxed)
    }

    /// How often a key went on without one of its messages.
    pub(crate) fn gaps(&self) -> u64 {
        self.order.as_ref().map_or(0, Order::gaps)
    }

    /// Whether all has been received.
    pub(crate) fn is_done(&self) -> bool {
        *self.done.borrow()
    }
}

fn check(order: &Order, stamp: &Stamp) {
    if let Some(gap) = order.receive(stamp)
        && order.gaps() <= GAPS_TOLD_MAX
    {
        eprintln!(
            "order broken: of key {} came number {} where {} was the next",
            gap.key, gap.came, gap.expected
        );
    }
}

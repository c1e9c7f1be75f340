//! Everything that the clients of an audit did and saw, with the time of one clock.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::message::{Delivery, Token};

/// One subscription of the audit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Audited {
    /// Ordered, at least once.
    AtLeastOnce,
    /// Ordered, exactly once.
    ExactlyOnce,
}

/// A time since the audit began.
pub(super) type Moment = Duration;

/// The record of an audit.
pub(super) struct Ledger {
    start: Instant,
    streams: AtomicU64,
    pages: Mutex<Pages>,
}

/// What is written down.
#[derive(Clone, Debug, Default)]
pub(super) struct Pages {
    /// When the event began.
    pub(super) event: Option<Moment>,
    /// Publishes answered OK: when they were called, and when they were answered.
    pub(super) published: BTreeMap<Token, (Moment, Moment)>,
    /// Attempts to publish that failed: when they were called, and when they were answered.
    pub(super) failed: Vec<(Moment, Moment)>,
    /// Deliveries, in the order in which they arrived.
    pub(super) delivered: Vec<Delivered>,
    /// Whether the audit is at its end.
    pub(super) over: bool,
    /// When streams have ended before that.
    pub(super) streams_ended: BTreeMap<u64, Moment>,
    /// Acks answered OK of exactly-once deliveries: the message's id, and how many deliveries had
    /// arrived by then.
    pub(super) acked: Vec<(u64, usize)>,
}

/// One delivery.
#[derive(Clone, Copy, Debug)]
pub(super) struct Delivered {
    pub(super) subscription: Audited,
    /// Which stream it came on. Each that is opened has its own number.
    pub(super) stream: u64,
    pub(super) token: Token,
    pub(super) message_id: u64,
    pub(super) at: Moment,
}

impl Ledger {
    pub(super) fn new(start: Instant) -> Self {
        Ledger {
            start,
            streams: AtomicU64::new(0),
            pages: Mutex::default(),
        }
    }

    /// The time now.
    pub(super) fn now(&self) -> Moment {
        self.start.elapsed()
    }

    /// The event begins.
    pub(super) fn event(&self) {
        let now = self.now();
        self.pages().event = Some(now);
    }

    /// A publish that was called at `called` is answered OK.
    pub(super) fn published(&self, token: Token, called: Moment) {
        let now = self.now();
        self.pages().published.insert(token, (called, now));
    }

    /// A publish that was called at `called` has failed.
    pub(super) fn failed(&self, called: Moment) {
        let now = self.now();
        self.pages().failed.push((called, now));
    }

    /// A stream is opened: its number.
    pub(super) fn stream(&self) -> u64 {
        self.streams.fetch_add(1, Ordering::Relaxed)
    }

    /// A stream has ended. Its client opens another.
    pub(super) fn stream_ended(&self, number: u64) {
        let now = self.now();
        let mut pages = self.pages();
        if !pages.over {
            pages.streams_ended.insert(number, now);
        }
    }

    /// Everything was delivered, or nothing more comes: what ends now is ended by the audit.
    pub(super) fn over(&self) {
        self.pages().over = true;
    }

    /// A message arrives on a stream.
    pub(super) fn delivered(&self, subscription: Audited, stream: u64, delivery: &Delivery) {
        let at = self.now();
        self.pages().delivered.push(Delivered {
            subscription,
            stream,
            token: delivery.token,
            message_id: delivery.message_id,
            at,
        });
    }

    /// An exactly-once ack is answered OK.
    pub(super) fn acked(&self, message_id: u64) {
        let mut pages = self.pages();
        let before = pages.delivered.len();
        pages.acked.push((message_id, before));
    }

    /// How many publishes that were answered OK have not been delivered, counted for each
    /// subscription.
    pub(super) fn missing(&self) -> usize {
        super::verdict::lost(&self.pages()).len()
    }

    /// What is written down so far.
    pub(super) fn pages(&self) -> MutexGuard<'_, Pages> {
        self.pages.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

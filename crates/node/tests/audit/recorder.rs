//! Writes the history of a test with real processes, by one clock.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard};
use std::time::Instant;

use model::{MessageId, Timestamp};
use sim::history::{Call, DeliveryNumber, Event, History, Session, Subscription, Value, What};

/// What happened so far.
pub(crate) struct Recorder {
    start: Instant,
    record: Mutex<Record>,
}

#[derive(Default)]
struct Record {
    history: History,
    /// The last number that was given to anything.
    numbers: u64,
    /// Messages whose publish was answered OK.
    stored: BTreeSet<MessageId>,
    /// Messages that were delivered to a subscription.
    delivered: BTreeSet<(Subscription, MessageId)>,
    /// Acks that were answered OK.
    acks: usize,
    /// Messages of whose last delivery the ack was answered OK.
    acknowledged: BTreeSet<(Subscription, MessageId)>,
    /// The same where it was sent and not answered: it may count, and then nothing comes again.
    in_doubt: BTreeSet<(Subscription, MessageId)>,
}

impl Recorder {
    pub(crate) fn new() -> Self {
        Recorder {
            start: Instant::now(),
            record: Mutex::default(),
        }
    }

    /// Writes one event.
    pub(crate) fn event(&self, what: What) {
        let mut record = self.record();
        // Taken under the lock, so that times never go back.
        let at = Timestamp::ZERO.plus(self.start.elapsed());
        match &what {
            What::PublishOk { ids, .. } => record.stored.extend(ids),
            What::Delivered(delivered) => {
                let message = (delivered.subscription, delivered.message);
                record.delivered.insert(message);
                record.acknowledged.remove(&message);
                record.in_doubt.remove(&message);
            }
            _ => {}
        }
        record.history.events.push(Event { at, what });
    }

    /// Writes that an ack was answered OK.
    pub(crate) fn acknowledged(&self, call: Call, subscription: Subscription, message: MessageId) {
        self.event(What::AckOk { call });
        let mut record = self.record();
        record.acks += 1;
        record.acknowledged.insert((subscription, message));
    }

    /// Notes that an ack is not answered, or not well: it may have been carried out.
    pub(crate) fn ack_in_doubt(&self, subscription: Subscription, message: MessageId) {
        self.record().in_doubt.insert((subscription, message));
    }

    pub(crate) fn call(&self) -> Call {
        Call(self.number())
    }

    pub(crate) fn delivery(&self) -> DeliveryNumber {
        DeliveryNumber(self.number())
    }

    pub(crate) fn session(&self) -> Session {
        Session(self.number())
    }

    pub(crate) fn value(&self) -> Value {
        Value(self.number())
    }

    /// How many acks were answered OK so far.
    pub(crate) fn acks(&self) -> usize {
        self.record().acks
    }

    /// What these subscriptions have not settled: messages stored, or delivered whatever their
    /// publish was answered, without an ack that was answered OK or may count. Says of each whether
    /// it was ever delivered.
    pub(crate) fn unsettled(
        &self,
        subscriptions: &[Subscription],
    ) -> Vec<(Subscription, MessageId, bool)> {
        let record = self.record();
        let stored = subscriptions.iter().flat_map(|subscription| {
            record
                .stored
                .iter()
                .map(|message| (*subscription, *message))
        });
        let mut wanted: BTreeSet<_> = stored.collect();
        wanted.extend(&record.delivered);
        let settled = |message: &(Subscription, MessageId)| {
            record.acknowledged.contains(message) || record.in_doubt.contains(message)
        };
        let unsettled = wanted.into_iter().filter(|message| !settled(message));
        unsettled
            .map(|one| (one.0, one.1, record.delivered.contains(&one)))
            .collect()
    }

    /// The history, at the end of the test.
    pub(crate) fn history(&self, drained: bool) -> History {
        History {
            drained,
            ..self.record().history.clone()
        }
    }

    fn number(&self) -> u64 {
        let mut record = self.record();
        record.numbers += 1;
        record.numbers
    }

    fn record(&self) -> MutexGuard<'_, Record> {
        self.record.lock().expect("nobody panics while writing")
    }
}

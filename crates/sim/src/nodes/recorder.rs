//! Writes the history of a simulation, by its one clock.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use model::{MessageId, Timestamp};

use crate::history::{
    Call, Delivered, DeliveryNumber, Event, History, Session, Subscription, Value, What,
};

/// What happened so far. Clones are the same.
#[derive(Clone, Default)]
pub(super) struct Recorder(Arc<Mutex<Record>>);

#[derive(Default)]
struct Record {
    history: History,
    /// What else is worth telling, and before which event.
    said: Vec<(usize, String)>,
    /// The last number that was given to anything.
    numbers: u64,
    subscriptions: BTreeSet<Subscription>,
    /// Messages whose publish was answered OK.
    stored: BTreeSet<MessageId>,
    /// Messages that were delivered to a subscription.
    delivered: BTreeSet<(Subscription, MessageId)>,
    /// Messages whose ack was answered OK, or was sent and may count.
    settled: BTreeSet<(Subscription, MessageId)>,
}

impl Recorder {
    /// Writes one event, which happens so long after the beginning.
    pub(super) fn event_at(&self, at: Timestamp, what: What) {
        let mut record = self.record();
        match &what {
            What::PublishOk { ids, .. } => record.stored.extend(ids),
            What::Created { subscription, .. } => drop(record.subscriptions.insert(*subscription)),
            What::Delivered(delivered) => {
                let message = (delivered.subscription, delivered.message);
                record.delivered.insert(message);
                // What comes again must be settled again.
                record.settled.remove(&message);
            }
            _ => {}
        }
        // Hosts take their turns within a tick, each from its beginning.
        let last = record.history.events.last();
        let at = last.map_or(at, |last| last.at.max(at));
        record.history.events.push(Event { at, what });
    }

    /// Writes what a client does or sees now.
    pub(super) fn event(&self, what: What) {
        let elapsed = turmoil::sim_elapsed().expect("clients are hosts of the simulation");
        self.event_at(Timestamp::ZERO.plus(elapsed), what);
    }

    /// Takes down something that no checker reads.
    pub(super) fn say(&self, what: String) {
        let mut record = self.record();
        let before = record.history.events.len();
        record.said.push((before, what));
    }

    /// What was said, and before which event.
    pub(super) fn said(&self) -> Vec<(usize, String)> {
        self.record().said.clone()
    }

    /// The ack of a delivery was answered OK, or may count.
    pub(super) fn settled(&self, delivered: &Delivered) {
        let message = (delivered.subscription, delivered.message);
        self.record().settled.insert(message);
    }

    pub(super) fn call(&self) -> Call {
        Call(self.number())
    }

    pub(super) fn delivery(&self) -> DeliveryNumber {
        DeliveryNumber(self.number())
    }

    pub(super) fn session(&self) -> Session {
        Session(self.number())
    }

    pub(super) fn value(&self) -> Value {
        Value(self.number())
    }

    /// How many messages some subscription has not settled.
    pub(super) fn unsettled(&self) -> usize {
        let record = self.record();
        let stored = record.subscriptions.iter().flat_map(|subscription| {
            let stored = record.stored.iter();
            stored.map(|message| (*subscription, *message))
        });
        let mut wanted: BTreeSet<_> = stored.collect();
        wanted.extend(&record.delivered);
        wanted.difference(&record.settled).count()
    }

    /// The history, at the end.
    pub(super) fn history(&self, drained: bool) -> History {
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
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

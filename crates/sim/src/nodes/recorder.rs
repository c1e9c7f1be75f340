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
    /// Messages whose ack was answered OK, or was sent and may count.
    settled: BTreeSet<(Subscription, MessageId)>,
    /// Messages that were stored or delivered, and are none of those.
    unsettled: BTreeSet<(Subscription, MessageId)>,
    /// Keys that an operator has moved.
    moved: u32,
    /// Whether an operator moves no more.
    ended_moving: bool,
}

impl Record {
    /// A publish was answered OK. Its messages may have been delivered before.
    fn stored(&mut self, ids: &[MessageId]) {
        for subscription in &self.subscriptions {
            let messages = ids.iter().map(|id| (*subscription, *id));
            let unsettled = messages.filter(|message| !self.settled.contains(message));
            self.unsettled.extend(unsettled);
        }
    }
}

impl Recorder {
    /// Writes one event, which happens so long after the beginning.
    pub(super) fn event_at(&self, at: Timestamp, what: What) {
        let mut record = self.record();
        match &what {
            What::PublishOk { ids, .. } => record.stored(ids),
            What::Created { subscription, .. } => drop(record.subscriptions.insert(*subscription)),
            What::Delivered(delivered) => {
                let message = (delivered.subscription, delivered.message);
                // What comes again must be settled again.
                record.settled.remove(&message);
                record.unsettled.insert(message);
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
        let mut record = self.record();
        record.unsettled.remove(&message);
        record.settled.insert(message);
    }

    /// A key has moved.
    pub(super) fn moved(&self) {
        self.record().moved += 1;
    }

    /// How often keys have moved.
    pub(super) fn moves(&self) -> u32 {
        self.record().moved
    }

    /// No key will be moved any more, and none is on its way.
    pub(super) fn ended_moving(&self) {
        self.record().ended_moving = true;
    }

    /// Whether no key will be moved any more.
    pub(super) fn has_ended_moving(&self) -> bool {
        self.record().ended_moving
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
        self.record().unsettled.len()
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

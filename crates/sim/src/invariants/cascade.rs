//! P3: where a message of a key is delivered again (ordered, at-least-once), everything of the key
//! that was delivered after it comes again, in order, unless it was dead-lettered.

use std::collections::{BTreeMap, BTreeSet};

use model::MessageId;

use super::Checker;
use super::deliveries::Deliveries;
use crate::history::{Delivered, Event, Key, Subscription, What};

#[derive(Default)]
pub(super) struct Cascade {
    deliveries: Deliveries,
    lanes: BTreeMap<(Subscription, Key), Lane>,
    deleted: BTreeSet<Subscription>,
}

#[derive(Default)]
struct Lane {
    delivered: BTreeSet<MessageId>,
    previous: MessageId,
}

impl Checker for Cascade {
    fn promise(&self) -> &'static str {
        "P3 cascade"
    }

    fn event(&mut self, event: &Event) -> Result<(), String> {
        match &event.what {
            What::Delivered(delivered) if self.applies_to(delivered) => {
                self.delivered(delivered)?
            }
            What::Deleted { subscription } => drop(self.deleted.insert(*subscription)),
            _ => {}
        }
        self.deliveries.event(&event.what);
        Ok(())
    }

    fn drained(&mut self) -> Result<(), String> {
        for ((subscription, key), lane) in &self.lanes {
            let owed = self.owed(*subscription, lane, MessageId::MAX);
            if let Some(owed) = owed.filter(|_| !self.deleted.contains(subscription)) {
                let previous = lane.previous;
                let what = format!("{owed} of {key:?} did not come again after {previous}");
                return Err(what);
            }
        }
        Ok(())
    }
}

impl Cascade {
    fn applies_to(&self, delivered: &Delivered) -> bool {
        let subscription = delivered.subscription;
        self.deliveries.in_lane(subscription, &delivered.key)
            && !self.deliveries.mode(subscription).exactly_once
    }

    fn delivered(&mut self, delivered: &Delivered) -> Result<(), String> {
        let key = (delivered.subscription, delivered.key.clone());
        let mut lane = self.lanes.remove(&key).unwrap_or_default();
        let owed = self.owed(delivered.subscription, &lane, delivered.message);
        if let Some(owed) = owed {
            return Err(format!("{owed} must come again before: {delivered:?}"));
        }
        lane.previous = delivered.message;
        lane.delivered.insert(delivered.message);
        self.lanes.insert(key, lane);
        Ok(())
    }

    /// The first message after the previous one, and before `until`, that was delivered before.
    fn owed(&self, subscription: Subscription, lane: &Lane, until: MessageId) -> Option<MessageId> {
        let after = MessageId(lane.previous.0 + 1);
        let mut between = lane.delivered.range(after.min(until)..until).copied();
        between.find(|message| !self.deliveries.is_dead(subscription, *message))
    }
}

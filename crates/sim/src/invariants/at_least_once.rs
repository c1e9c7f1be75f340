//! P4: whatever was published after a subscription was created is delivered until it is acked.

use std::collections::{BTreeMap, BTreeSet};

use model::MessageId;

use super::Checker;
use super::deliveries::Deliveries;
use crate::history::{Call, DeliveryNumber, Event, Subscription, What};

type Message = (Subscription, MessageId);

#[derive(Default)]
pub(super) struct AtLeastOnce {
    deliveries: Deliveries,
    subscriptions: BTreeSet<Subscription>,
    /// Publishes under way, with the subscriptions that existed before them.
    publishes: BTreeMap<Call, BTreeSet<Subscription>>,
    /// What must be delivered, and acknowledged, until the history ends.
    wanted: BTreeSet<Message>,
    /// Acks that were not refused.
    acks: BTreeMap<Message, BTreeSet<(DeliveryNumber, Call)>>,
}

impl Checker for AtLeastOnce {
    fn promise(&self) -> &'static str {
        "P4 at least once"
    }

    fn event(&mut self, event: &Event) -> Result<(), String> {
        self.deliveries.event(&event.what);
        match &event.what {
            What::Created { subscription, .. } => drop(self.subscriptions.insert(*subscription)),
            What::Deleted { subscription } => {
                self.subscriptions.remove(subscription);
                self.wanted
                    .retain(|(wanted_by, _)| wanted_by != subscription);
            }
            What::PublishInvoked { call, .. } => {
                self.publishes.insert(*call, self.subscriptions.clone());
            }
            What::PublishOk { call, ids } => self.stored(*call, ids),
            // Delivered is wanted, whatever became of its publish.
            What::Delivered(delivered) if self.subscriptions.contains(&delivered.subscription) => {
                let message = (delivered.subscription, delivered.message);
                self.wanted.insert(message);
            }
            What::AckInvoked { call, .. } => {
                let (message, ack) = self.ack(*call);
                self.acks.entry(message).or_default().insert(ack);
            }
            What::AckFailed { call } => {
                let (message, ack) = self.ack(*call);
                self.acks.entry(message).or_default().remove(&ack);
            }
            _ => {}
        }
        Ok(())
    }

    fn drained(&mut self) -> Result<(), String> {
        for message in &self.wanted {
            let (subscription, id) = *message;
            let Some(delivery) = self.deliveries.latest(subscription, id) else {
                return Err(format!("{subscription:?} never got {id}"));
            };
            if !self.is_settled(*message, delivery) {
                return Err(format!(
                    "{delivery:?} of {id} was never acked, nor repeated"
                ));
            }
        }
        Ok(())
    }
}

impl AtLeastOnce {
    fn stored(&mut self, call: Call, ids: &[MessageId]) {
        for subscription in self.publishes.remove(&call).unwrap_or_default() {
            if self.subscriptions.contains(&subscription) {
                self.wanted.extend(ids.iter().map(|id| (subscription, *id)));
            }
        }
    }

    fn ack(&self, call: Call) -> (Message, (DeliveryNumber, Call)) {
        let acked = self.deliveries.of_call(call);
        let message = (acked.subscription, acked.message);
        (message, (acked.delivery, call))
    }

    /// In a key's order only an ack of the latest delivery can settle: the older ones were taken
    /// back before it was sent.
    fn is_settled(&self, message: Message, latest: DeliveryNumber) -> bool {
        let key = &self.deliveries.get(latest).key;
        let in_lane = self.deliveries.in_lane(message.0, key);
        let acks = self.acks.get(&message).into_iter().flatten();
        let mut counting = acks.filter(|(delivery, _)| !in_lane || *delivery == latest);
        counting.next().is_some() || self.deliveries.is_dead(message.0, message.1)
    }
}

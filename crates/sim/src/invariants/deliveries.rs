//! What every checker of deliveries must remember: which call is about which delivery of which
//! message, and which of them were about to be settled.

use std::collections::{BTreeMap, BTreeSet};

use model::MessageId;

use crate::history::{Call, Delivered, DeliveryNumber, Key, Subscription, What};

/// The deliveries so far.
#[derive(Debug, Default)]
pub(super) struct Deliveries {
    modes: BTreeMap<Subscription, Mode>,
    by_number: BTreeMap<DeliveryNumber, Delivered>,
    latest: BTreeMap<(Subscription, MessageId), DeliveryNumber>,
    calls: BTreeMap<Call, DeliveryNumber>,
    maybe_settled: BTreeSet<(Subscription, MessageId)>,
    dead: BTreeSet<(Subscription, MessageId)>,
}

/// How a subscription delivers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mode {
    pub(super) ordered: bool,
    pub(super) exactly_once: bool,
    pub(super) may_wait: bool,
}

impl Deliveries {
    /// Takes an event in; checkers do so after they have judged it.
    pub(super) fn event(&mut self, what: &What) {
        match what {
            What::Created {
                subscription,
                ordered,
                exactly_once,
                may_wait,
            } => {
                let mode = Mode {
                    ordered: *ordered,
                    exactly_once: *exactly_once,
                    may_wait: *may_wait,
                };
                self.modes.insert(*subscription, mode);
            }
            What::Delivered(delivered) => {
                let message = (delivered.subscription, delivered.message);
                self.latest.insert(message, delivered.delivery);
                self.by_number.insert(delivered.delivery, delivered.clone());
            }
            What::AckInvoked { call, delivery } => {
                self.calls.insert(*call, *delivery);
                let delivered = &self.by_number[delivery];
                let message = (delivered.subscription, delivered.message);
                self.maybe_settled.insert(message);
            }
            What::NackInvoked { call, delivery } | What::ExtendInvoked { call, delivery, .. } => {
                self.calls.insert(*call, *delivery);
            }
            What::DeadLettered {
                subscription,
                message,
            } => {
                self.dead.insert((*subscription, *message));
            }
            _ => {}
        }
    }

    pub(super) fn mode(&self, subscription: Subscription) -> Mode {
        self.modes[&subscription]
    }

    /// Whether the messages of a key come to the subscription in order.
    pub(super) fn in_lane(&self, subscription: Subscription, key: &Key) -> bool {
        self.mode(subscription).ordered && !key.is_empty()
    }

    /// The delivery that a call is about.
    pub(super) fn of_call(&self, call: Call) -> &Delivered {
        &self.by_number[&self.calls[&call]]
    }

    pub(super) fn get(&self, delivery: DeliveryNumber) -> &Delivered {
        &self.by_number[&delivery]
    }

    /// The newest delivery of a message.
    pub(super) fn latest(
        &self,
        subscription: Subscription,
        message: MessageId,
    ) -> Option<DeliveryNumber> {
        self.latest.get(&(subscription, message)).copied()
    }

    /// Whether an ack of any delivery of the message was sent.
    pub(super) fn maybe_settled(&self, subscription: Subscription, message: MessageId) -> bool {
        self.maybe_settled.contains(&(subscription, message))
    }

    pub(super) fn is_dead(&self, subscription: Subscription, message: MessageId) -> bool {
        self.dead.contains(&(subscription, message))
    }
}

//! P5: an ack of a message's latest delivery, answered OK, holds: the message comes back only
//! along with an earlier one of its key that was not acknowledged so.

use std::collections::{BTreeMap, BTreeSet};

use model::MessageId;

use super::Checker;
use super::deliveries::Deliveries;
use crate::history::{Call, Delivered, Event, Key, Subscription, What};

#[derive(Default)]
pub(super) struct AcksHold {
    deliveries: Deliveries,
    /// Messages whose latest delivery was acknowledged OK.
    firm: BTreeSet<(Subscription, MessageId)>,
    /// The last delivery of each ordered key.
    previous: BTreeMap<(Subscription, Key), MessageId>,
}

impl Checker for AcksHold {
    fn promise(&self) -> &'static str {
        "P5 acks hold"
    }

    fn event(&mut self, event: &Event) -> Result<(), String> {
        match &event.what {
            What::AckOk { call } => self.acked(*call),
            What::Delivered(delivered) => self.delivered(delivered)?,
            _ => {}
        }
        self.deliveries.event(&event.what);
        Ok(())
    }
}

impl AcksHold {
    fn acked(&mut self, call: Call) {
        let acked = self.deliveries.of_call(call);
        let (subscription, message) = (acked.subscription, acked.message);
        // A delivery that was sent meanwhile makes the id an older one, which promises nothing.
        if self.deliveries.latest(subscription, message) == Some(acked.delivery) {
            self.firm.insert((subscription, message));
        }
    }

    fn delivered(&mut self, delivered: &Delivered) -> Result<(), String> {
        let message = (delivered.subscription, delivered.message);
        let firm = self.firm.remove(&message);
        if !self
            .deliveries
            .in_lane(delivered.subscription, &delivered.key)
        {
            return match firm {
                true => Err(format!("acknowledged, and delivered again: {delivered:?}")),
                false => Ok(()),
            };
        }
        let lane = (delivered.subscription, delivered.key.clone());
        let previous = self.previous.insert(lane, delivered.message);
        // It comes along with the one before it, or it is where the key went back to.
        match previous.is_none_or(|previous| previous < delivered.message) {
            false if firm => Err(format!(
                "acknowledged, and the key went back to it: {delivered:?}"
            )),
            _ => Ok(()),
        }
    }
}

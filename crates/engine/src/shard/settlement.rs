//! What settling a message means apart from where it is written down: who may do it, what it
//! leaves behind, and what the answer is when it is asked for again.

use model::{Generation, Incarnation, MessageId, Timestamp, sabotage};

use super::{AckOutcome, Backlog, run_release};
use crate::Fault;
use crate::kv::{Overlay, ViewExt};
use crate::table::attachment::Attachment;
use crate::table::delivery::{Delivery, DeliveryKey};
use crate::table::run::RunKey;
use crate::table::settled::{Settled, SettledKey};
use crate::table::settled_at::{SettledAt, SettledAtKey};

/// One ack of a command.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ack {
    /// Its place in the command.
    pub(super) place: usize,
    pub(super) message: MessageId,
    /// The delivery that is acknowledged; `None` settles whatever the delivery.
    pub(super) generation: Option<Generation>,
}

/// Messages of one subscription are being settled.
pub(super) struct Settlement<'o, 'v> {
    pub(super) overlay: &'o mut Overlay<'v>,
    pub(super) topic: Incarnation,
    pub(super) subscription: Incarnation,
    pub(super) attachment: Attachment,
    time: Timestamp,
    /// Whether any lease or attempt is logged: most subscriptions have none, and no look-ups then.
    logs_deliveries: bool,
}

impl<'o, 'v> Settlement<'o, 'v> {
    /// `None` if the subscription does not take part in the topic.
    pub(super) fn open(
        overlay: &'o mut Overlay<'v>,
        topic: Incarnation,
        subscription: Incarnation,
        time: Timestamp,
    ) -> Result<Option<Self>, Fault> {
        let Some(backlog) = Backlog::open(overlay, topic, subscription)? else {
            return Ok(None);
        };
        let logs_deliveries = backlog.deliveries().next().transpose()?.is_some();
        let attachment = backlog.attachment().clone();
        Ok(Some(Settlement {
            overlay,
            topic,
            subscription,
            attachment,
            time,
            logs_deliveries,
        }))
    }

    pub(super) fn exactly_once(&self) -> bool {
        self.attachment.settings.exactly_once
    }

    /// Whether the ack has the right to settle its message: exactly-once, the live lease.
    pub(super) fn has_right(&self, ack: &Ack) -> Result<bool, Fault> {
        let Some(generation) = ack.generation else {
            return Ok(true);
        };
        if !self.exactly_once() || sabotage!("ack-without-lease") {
            return Ok(true);
        }
        let delivery = self.overlay.row::<Delivery>(&self.delivery(ack.message))?;
        let lease = delivery.and_then(|delivery| delivery.lease);
        Ok(lease.is_some_and(|lease| lease.generation == generation))
    }

    /// The answer where the message is settled already, or not stored any more.
    pub(super) fn again(&self, ack: &Ack) -> Result<AckOutcome, Fault> {
        let (true, Some(generation)) = (self.exactly_once(), ack.generation) else {
            return Ok(AckOutcome::Acknowledged);
        };
        let key = SettledKey {
            subscription: self.subscription,
            message: ack.message,
        };
        match self.overlay.row::<Settled>(&key)? {
            Some(settled)
                if settled.generation == generation && !sabotage!("repeated-ack-refused") =>
            {
                Ok(AckOutcome::Acknowledged)
            }
            _ => Ok(AckOutcome::Stale),
        }
    }

    /// Exactly-once: the lease is over, and a repeat of the ack must be answered alike.
    pub(super) fn remember(&mut self, ack: &Ack) {
        let (true, Some(generation)) = (self.exactly_once(), ack.generation) else {
            return;
        };
        let (subscription, message, at) = (self.subscription, ack.message, self.time);
        self.overlay.delete::<Delivery>(&self.delivery(message));
        let key = SettledKey {
            subscription,
            message,
        };
        self.overlay.put(&key, &Settled { generation, at });
        let key = SettledAtKey {
            at,
            subscription,
            message,
        };
        self.overlay.put(&key, &SettledAt);
    }

    /// The message is settled for good: its lease and attempts go.
    pub(super) fn forget_delivery(&mut self, message: MessageId) -> Result<(), Fault> {
        let key = self.delivery(message);
        if self.logs_deliveries
            && !sabotage!("attempts-outlive-the-message")
            && self.overlay.row::<Delivery>(&key)?.is_some()
        {
            self.overlay.delete::<Delivery>(&key);
        }
        Ok(())
    }

    /// The subscription has settled all of a run.
    pub(super) fn finish_run(&mut self, first: MessageId) -> Result<(), Fault> {
        let topic = self.topic;
        run_release::finish(self.overlay, RunKey { topic, first })
    }

    fn delivery(&self, message: MessageId) -> DeliveryKey {
        DeliveryKey {
            subscription: self.subscription,
            message,
        }
    }
}

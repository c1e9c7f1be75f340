//! P11, as far as a client sees it: a session never has more messages outstanding than it allowed.
//!
//! Counted are the deliveries whose lease surely lives. One that fails takes the later ones of its
//! ordered key along, at some moment until it is delivered again; these may be at another session,
//! if that has taken over from the one that has ended.

use std::collections::{BTreeMap, BTreeSet};

use model::{MessageId, Timestamp};

use super::Checker;
use super::deliveries::Deliveries;
use crate::history::{Call, Delivered, DeliveryNumber, Event, Key, Session, Subscription, What};

#[derive(Default)]
pub(super) struct Bounded {
    deliveries: Deliveries,
    sessions: BTreeMap<Session, Outstanding>,
    extensions: BTreeMap<Call, Timestamp>,
    /// By ordered key, what has failed and was not delivered again.
    failing: BTreeMap<(Subscription, Key), BTreeSet<MessageId>>,
}

#[derive(Default)]
struct Outstanding {
    messages_max: u32,
    leases: BTreeMap<DeliveryNumber, Lease>,
    by_deadline: BTreeSet<(Timestamp, DeliveryNumber)>,
}

#[derive(Clone, Copy)]
struct Lease {
    until: Timestamp,
    /// Whether it surely lives until then; else it may have been acknowledged.
    surely: bool,
}

impl Checker for Bounded {
    fn promise(&self) -> &'static str {
        "P11 bounded"
    }

    fn event(&mut self, event: &Event) -> Result<(), String> {
        match &event.what {
            What::Opened {
                session,
                messages_max,
                ..
            } => {
                let outstanding = Outstanding {
                    messages_max: *messages_max,
                    ..Outstanding::default()
                };
                self.sessions.insert(*session, outstanding);
            }
            What::Closed { session } => self.closed(*session),
            What::Delivered(delivered) => self.delivered(event.at, delivered)?,
            // The server may have given the credit back from here on.
            What::AckInvoked { delivery, .. } => self.may_be_acked(*delivery),
            What::AckOk { call } => self.acked(*call),
            What::NackInvoked { delivery, .. } | What::Returned { delivery } => {
                self.fail(*delivery);
            }
            What::ExtendInvoked {
                call,
                delivery,
                ack_deadline,
            } => {
                let until = event.at.plus(*ack_deadline);
                self.extensions.insert(*call, until);
                self.change(*delivery, |lease| lease.until = lease.until.min(until));
            }
            What::ExtendOk { call } => self.extended(*call),
            // What the server knew of its sessions is gone.
            What::Down => self.sessions.values_mut().for_each(Outstanding::clear),
            _ => {}
        }
        self.deliveries.event(&event.what);
        Ok(())
    }
}

impl Bounded {
    fn delivered(&mut self, at: Timestamp, delivered: &Delivered) -> Result<(), String> {
        let latest = self
            .deliveries
            .latest(delivered.subscription, delivered.message);
        if let Some(latest) = latest {
            self.fail(latest);
        }
        self.expire(at, delivered.session);
        let may_be_over = self.may_be_over(delivered);
        // The server may not know yet that a session has ended.
        let Some(outstanding) = self.sessions.get_mut(&delivered.session) else {
            return Ok(());
        };
        let lease = Lease {
            until: at.plus(delivered.ack_deadline),
            surely: !may_be_over,
        };
        outstanding.set(delivered.delivery, lease);
        let surely = outstanding.leases.values().filter(|lease| lease.surely);
        let (messages, messages_max) = (surely.count(), outstanding.messages_max);
        match messages <= messages_max as usize {
            true => Ok(()),
            false => Err(format!(
                "{messages} outstanding of {messages_max}: {delivered:?}"
            )),
        }
    }

    /// Whether something on its way may end the lease at once: an ack of an earlier delivery, or the
    /// failure of an earlier message of the key.
    fn may_be_over(&mut self, delivered: &Delivered) -> bool {
        let (subscription, message) = (delivered.subscription, delivered.message);
        if !self.deliveries.in_lane(subscription, &delivered.key) {
            return self.deliveries.maybe_settled(subscription, message);
        }
        let lane = (subscription, delivered.key.clone());
        let failing = self.failing.entry(lane).or_default();
        failing.remove(&message);
        failing.first().is_some_and(|first| *first < message)
    }

    /// The server may settle the message, whichever of its deliveries this is. Or the ack is lost,
    /// and the lease runs out.
    fn may_be_acked(&mut self, delivery: DeliveryNumber) {
        let acked = self.deliveries.get(delivery);
        let latest = self.deliveries.latest(acked.subscription, acked.message);
        for delivery in latest.into_iter().chain([delivery]) {
            self.change(delivery, |lease| lease.surely = false);
        }
    }

    fn acked(&mut self, call: Call) {
        let acked = self.deliveries.of_call(call);
        let lane = (acked.subscription, acked.key.clone());
        if let Some(failing) = self.failing.get_mut(&lane) {
            failing.remove(&acked.message);
        }
        self.end(acked.delivery);
    }

    fn expire(&mut self, now: Timestamp, session: Session) {
        while let Some(outstanding) = self.sessions.get(&session)
            && let Some((until, delivery)) = outstanding.by_deadline.first().copied()
            && until <= now
        {
            self.fail(delivery);
        }
    }

    fn fail(&mut self, delivery: DeliveryNumber) {
        self.end(delivery);
        let failed = self.deliveries.get(delivery);
        if !self.deliveries.in_lane(failed.subscription, &failed.key) {
            return;
        }
        let lane = (failed.subscription, failed.key.clone());
        self.failing.entry(lane).or_default().insert(failed.message);
        for outstanding in self.sessions.values_mut() {
            let along = outstanding.leases.keys().copied().filter(|other| {
                let other = self.deliveries.get(*other);
                other.subscription == failed.subscription
                    && other.key == failed.key
                    && other.message > failed.message
            });
            for other in along.collect::<Vec<_>>() {
                outstanding.end(other);
            }
        }
    }

    /// What a session leaves behind fails sooner or later, if it is not acknowledged.
    fn closed(&mut self, session: Session) {
        let outstanding = self.sessions.remove(&session);
        for delivery in outstanding.iter().flat_map(|closed| closed.leases.keys()) {
            self.fail(*delivery);
        }
    }

    fn end(&mut self, delivery: DeliveryNumber) {
        let session = self.deliveries.get(delivery).session;
        if let Some(outstanding) = self.sessions.get_mut(&session) {
            outstanding.end(delivery);
        }
    }

    fn extended(&mut self, call: Call) {
        let delivery = self.deliveries.of_call(call).delivery;
        if let Some(until) = self.extensions.remove(&call) {
            self.change(delivery, |lease| lease.until = lease.until.max(until));
        }
    }

    fn change(&mut self, delivery: DeliveryNumber, change: impl Fn(&mut Lease)) {
        let session = self.deliveries.get(delivery).session;
        if let Some(outstanding) = self.sessions.get_mut(&session)
            && let Some(mut lease) = outstanding.leases.get(&delivery).copied()
        {
            change(&mut lease);
            outstanding.set(delivery, lease);
        }
    }
}

impl Outstanding {
    fn set(&mut self, delivery: DeliveryNumber, lease: Lease) {
        self.end(delivery);
        self.leases.insert(delivery, lease);
        self.by_deadline.insert((lease.until, delivery));
    }

    fn end(&mut self, delivery: DeliveryNumber) {
        if let Some(lease) = self.leases.remove(&delivery) {
            self.by_deadline.remove(&(lease.until, delivery));
        }
    }

    fn clear(&mut self) {
        self.leases.clear();
        self.by_deadline.clear();
    }
}

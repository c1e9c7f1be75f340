//! P6: on exactly-once subscriptions a message has one live lease, is not delivered again before
//! its deadline, and never after an ack that was answered OK; only the latest id counts.

use std::collections::{BTreeMap, BTreeSet};

use model::limits::ENDED_SESSION_RELEASE;
use model::{MessageId, Timestamp};

use super::Checker;
use super::deliveries::Deliveries;
use crate::history::{Call, Delivered, DeliveryNumber, Event, Key, Session, Subscription, What};

#[derive(Default)]
pub(super) struct ExactlyOnce {
    deliveries: Deliveries,
    /// Messages with the delivery whose ack was answered OK.
    acked: BTreeMap<(Subscription, MessageId), DeliveryNumber>,
    leases: BTreeMap<(Subscription, MessageId), Lease>,
    previous: BTreeMap<(Subscription, Key), MessageId>,
    streams: BTreeSet<Session>,
    /// Acks that were stale when they were sent.
    stale: BTreeSet<Call>,
    extensions: BTreeMap<Call, Timestamp>,
}

struct Lease {
    session: Session,
    /// It lives until then at least.
    until: Timestamp,
    extended: bool,
}

impl Checker for ExactlyOnce {
    fn promise(&self) -> &'static str {
        "P6 exactly once"
    }

    fn event(&mut self, event: &Event) -> Result<(), String> {
        self.judge(event)?;
        self.deliveries.event(&event.what);
        Ok(())
    }
}

impl ExactlyOnce {
    fn judge(&mut self, event: &Event) -> Result<(), String> {
        match &event.what {
            What::Delivered(delivered)
                if self.deliveries.mode(delivered.subscription).exactly_once =>
            {
                self.delivered(event.at, delivered)?;
            }
            What::AckInvoked { call, delivery } => self.ack_invoked(*call, *delivery),
            What::AckOk { call } => self.ack_ok(*call)?,
            // From here on the server may end it.
            What::NackInvoked { delivery, .. } => self.end(*delivery),
            What::ExtendInvoked {
                call, ack_deadline, ..
            } => {
                self.extensions.insert(*call, event.at.plus(*ack_deadline));
                self.extend_invoked(&event.what, event.at);
            }
            What::ExtendOk { call } => self.extend_ok(*call),
            What::Returned { delivery } => self.end(*delivery),
            What::Opened {
                session,
                stream: true,
                ..
            } => drop(self.streams.insert(*session)),
            What::Closed { session } => self.closed(event.at, *session),
            _ => {}
        }
        Ok(())
    }

    fn delivered(&mut self, at: Timestamp, delivered: &Delivered) -> Result<(), String> {
        let message = (delivered.subscription, delivered.message);
        if self.acked.contains_key(&message) {
            return Err(format!("acknowledged, and delivered again: {delivered:?}"));
        }
        let lane = (delivered.subscription, delivered.key.clone());
        let previous = self.previous.insert(lane, delivered.message);
        // In a key, leases end along with the one before them.
        let along = self
            .deliveries
            .in_lane(delivered.subscription, &delivered.key)
            && previous.is_some_and(|previous| previous < delivered.message);
        let lease = self.leases.get(&message);
        if let Some(lease) = lease.filter(|lease| at < lease.until && !along) {
            let early = lease.until.since(at);
            return Err(format!("{early:?} before the deadline: {delivered:?}"));
        }
        let lease = Lease {
            session: delivered.session,
            until: at.plus(delivered.ack_deadline),
            extended: false,
        };
        self.leases.insert(message, lease);
        Ok(())
    }

    fn ack_invoked(&mut self, call: Call, delivery: DeliveryNumber) {
        let acked = self.deliveries.get(delivery);
        let (subscription, message) = (acked.subscription, acked.message);
        if self.deliveries.latest(subscription, message) != Some(delivery) {
            self.stale.insert(call);
        }
    }

    fn ack_ok(&mut self, call: Call) -> Result<(), String> {
        let acked = self.deliveries.of_call(call).clone();
        if !self.deliveries.mode(acked.subscription).exactly_once {
            return Ok(());
        }
        let message = (acked.subscription, acked.message);
        let before = self.acked.insert(message, acked.delivery);
        if self.stale.contains(&call) || before.is_some_and(|before| before != acked.delivery) {
            return Err(format!("a stale id was accepted: {acked:?}"));
        }
        if self.deliveries.latest(message.0, message.1) != Some(acked.delivery) {
            return Err(format!(
                "accepted, but delivered again meanwhile: {acked:?}"
            ));
        }
        Ok(())
    }

    fn end(&mut self, delivery: DeliveryNumber) {
        let delivered = self.deliveries.get(delivery);
        let message = (delivered.subscription, delivered.message);
        if self.deliveries.latest(message.0, message.1) == Some(delivery) {
            self.leases.remove(&message);
        }
    }

    /// An extension may also shorten: until it is answered, the earlier of the two holds.
    fn extend_invoked(&mut self, what: &What, at: Timestamp) {
        let What::ExtendInvoked {
            delivery,
            ack_deadline,
            ..
        } = what
        else {
            return;
        };
        let until = at.plus(*ack_deadline);
        if let Some(lease) = self.lease_of(*delivery) {
            lease.until = lease.until.min(until);
        }
    }

    fn extend_ok(&mut self, call: Call) {
        let until = self.extensions.remove(&call);
        let delivery = self.deliveries.of_call(call).delivery;
        if let (Some(until), Some(lease)) = (until, self.lease_of(delivery)) {
            lease.until = lease.until.max(until);
            lease.extended = true;
        }
    }

    fn lease_of(&mut self, delivery: DeliveryNumber) -> Option<&mut Lease> {
        let delivered = self.deliveries.get(delivery);
        let message = (delivered.subscription, delivered.message);
        let latest = self.deliveries.latest(message.0, message.1) == Some(delivery);
        self.leases.get_mut(&message).filter(|_| latest)
    }

    /// The client may not have got what a stream has sent it; what a pull was answered, it has.
    fn closed(&mut self, at: Timestamp, session: Session) {
        if !self.streams.remove(&session) {
            return;
        }
        let release = at.plus(ENDED_SESSION_RELEASE);
        let of_session = self.leases.values_mut();
        for lease in of_session.filter(|lease| lease.session == session && !lease.extended) {
            lease.until = lease.until.min(release);
        }
    }
}

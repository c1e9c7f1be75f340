//! P10: something to deliver, credit to deliver it, and nothing that holds the key: it is delivered
//! within a second.
//!
//! Judged where nothing can hold a message: it was never delivered or has just been given back, and
//! every earlier one of an ordered key is acknowledged. While a key moves it may stand still; how
//! long that lasts is for whoever moves it to judge.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use model::{MessageId, Timestamp};

use super::Checker;
use super::deliveries::Deliveries;
use crate::history::{Call, Event, Key, Session, Subscription, What};

/// What may pass from when all is there to the delivery.
const WAIT_MAX: Duration = Duration::from_secs(1);

#[derive(Default)]
pub(super) struct NoLostWakeUp {
    deliveries: Deliveries,
    publishes: BTreeMap<Call, (Key, BTreeSet<Subscription>)>,
    backlogs: BTreeMap<Subscription, Backlog>,
    sessions: BTreeMap<Session, Subscription>,
    /// Keys that move, each as often as it does.
    moving: Vec<Key>,
    /// Since when the server serves; the last of all times while it doesn't.
    up_since: Timestamp,
}

#[derive(Default)]
struct Backlog {
    /// By ordered key what is not acknowledged, and whether somebody has it.
    lanes: BTreeMap<Key, BTreeMap<MessageId, bool>>,
    /// What nothing holds, and since when.
    due: BTreeMap<MessageId, Timestamp>,
    /// Keys that move, each as often as it does.
    moving: Vec<Key>,
    by_time: BTreeSet<(Timestamp, MessageId)>,
    /// Sessions with credit.
    free: BTreeSet<Session>,
    free_since: Timestamp,
}

impl Checker for NoLostWakeUp {
    fn promise(&self) -> &'static str {
        "P10 no lost wake-up"
    }

    fn event(&mut self, event: &Event) -> Result<(), String> {
        for (subscription, backlog) in &self.backlogs {
            if let Some(message) = backlog.overdue(event.at, self.up_since) {
                let what = format!("{message} waits for {subscription:?}, and there is credit");
                return Err(what);
            }
        }
        self.take(event.at, &event.what);
        self.deliveries.event(&event.what);
        Ok(())
    }
}

impl NoLostWakeUp {
    fn take(&mut self, at: Timestamp, what: &What) {
        match what {
            What::Created { subscription, .. } => {
                let backlog = Backlog {
                    moving: self.moving.clone(),
                    ..Backlog::default()
                };
                self.backlogs.insert(*subscription, backlog);
            }
            What::Deleted { subscription } => drop(self.backlogs.remove(subscription)),
            What::PublishInvoked { call, key, .. } => {
                let subscriptions = self.backlogs.keys().copied().collect();
                self.publishes.insert(*call, (key.clone(), subscriptions));
            }
            What::PublishOk { call, ids } => self.stored(at, *call, ids),
            What::Opened {
                session,
                subscription,
                ..
            } => drop(self.sessions.insert(*session, *subscription)),
            What::Credit { session, free } => self.credit(at, *session, *free),
            What::Closed { session } => self.credit(at, *session, false),
            What::Delivered(delivered) => {
                let lane = self.lane(delivered.subscription, &delivered.key);
                if let Some(backlog) = self.backlogs.get_mut(&delivered.subscription) {
                    backlog.delivered(at, lane, delivered.message);
                }
            }
            What::AckOk { call } => self.acked(at, *call),
            What::NackOk { call } => self.nacked(at, *call),
            // It may be settled from here on.
            What::AckInvoked { delivery, .. } => {
                let acked = self.deliveries.get(*delivery);
                if let Some(backlog) = self.backlogs.get_mut(&acked.subscription) {
                    backlog.is_not_due(acked.message);
                }
            }
            What::DeadLettered {
                subscription,
                message,
            } => self.settled(at, *subscription, *message),
            What::Moving { key } => self.stands_still(key),
            What::Moved { key } => self.goes_on(at, key),
            What::Up => self.up_since = at,
            What::Down => {
                self.up_since = Timestamp(u64::MAX);
                self.forget_what_may_be_leased();
            }
            _ => {}
        }
    }

    /// Nothing of the key is due while it moves. Where its messages have no order, nothing at all is.
    fn stands_still(&mut self, key: &Key) {
        self.moving.push(key.clone());
        for (subscription, backlog) in &mut self.backlogs {
            backlog.moving.push(key.clone());
            match self.deliveries.in_lane(*subscription, key) {
                true => backlog.lane_is_not_due(key),
                false => backlog.nothing_is_due(),
            }
        }
    }

    /// The key has a place again. Whoever has it now sends what is not acknowledged once more, but
    /// exactly-once leases have moved along, also those of deliveries that were lost on their way.
    fn goes_on(&mut self, at: Timestamp, key: &Key) {
        remove_one(&mut self.moving, key);
        let mode = |subscription| self.deliveries.mode(subscription);
        for (of, subscriptions) in self.publishes.values_mut() {
            subscriptions.retain(|subscription| of != key || !mode(*subscription).exactly_once);
        }
        for (subscription, backlog) in &mut self.backlogs {
            remove_one(&mut backlog.moving, key);
            if mode(*subscription).exactly_once {
                backlog.lane_may_be_leased(key);
            }
            backlog.front_is_due(at, key);
        }
    }

    /// An exactly-once lease is logged before its delivery is sent. If the server went down
    /// between the two, the lease holds a message that nobody has seen.
    fn forget_what_may_be_leased(&mut self) {
        let exactly_once = |subscription| self.deliveries.mode(subscription).exactly_once;
        for (_, subscriptions) in self.publishes.values_mut() {
            subscriptions.retain(|subscription| !exactly_once(*subscription));
        }
        for (subscription, backlog) in &mut self.backlogs {
            if exactly_once(*subscription) {
                backlog.nothing_is_due();
                let keys: Vec<_> = backlog.lanes.keys().cloned().collect();
                keys.iter().for_each(|key| backlog.lane_may_be_leased(key));
            }
        }
    }

    fn lane(&self, subscription: Subscription, key: &Key) -> Option<Key> {
        let in_lane = self.deliveries.in_lane(subscription, key);
        in_lane.then(|| key.clone())
    }

    fn stored(&mut self, at: Timestamp, call: Call, ids: &[MessageId]) {
        let Some((key, subscriptions)) = self.publishes.remove(&call) else {
            return;
        };
        for subscription in subscriptions {
            let lane = self.lane(subscription, &key);
            let Some(backlog) = self.backlogs.get_mut(&subscription) else {
                continue;
            };
            for id in ids {
                // Nothing tells when what has no lane is due again.
                let stands_still = lane.is_none() && backlog.moving.contains(&key);
                // A delivery may overtake the answer.
                if self.deliveries.latest(subscription, *id).is_none() && !stands_still {
                    backlog.stored(at, lane.as_ref(), *id);
                }
            }
        }
    }

    fn acked(&mut self, at: Timestamp, call: Call) {
        let acked = self.deliveries.of_call(call);
        let (subscription, message) = (acked.subscription, acked.message);
        if self.deliveries.latest(subscription, message) == Some(acked.delivery) {
            self.settled(at, subscription, message);
        }
    }

    /// The message is free again, unless an ack of it is on its way. Exactly-once, the later leases
    /// of a key live on, and so does its holder.
    fn nacked(&mut self, at: Timestamp, call: Call) {
        let nacked = self.deliveries.of_call(call);
        let (subscription, message) = (nacked.subscription, nacked.message);
        let is_latest = self.deliveries.latest(subscription, message) == Some(nacked.delivery);
        let is_acked = self.deliveries.maybe_settled(subscription, message);
        let lane = self.lane(subscription, &nacked.key);
        let mode = self.deliveries.mode(subscription);
        if !is_latest || is_acked || mode.may_wait || (lane.is_some() && mode.exactly_once) {
            return;
        }
        if let Some(backlog) = self.backlogs.get_mut(&subscription) {
            backlog.stored(at, lane.as_ref(), message);
        }
    }

    fn settled(&mut self, at: Timestamp, subscription: Subscription, message: MessageId) {
        let Some(delivery) = self.deliveries.latest(subscription, message) else {
            return;
        };
        let key = self.deliveries.get(delivery).key.clone();
        if let Some(backlog) = self.backlogs.get_mut(&subscription)
            && let Some(lane) = backlog.lanes.get_mut(&key)
        {
            lane.remove(&message);
            backlog.front_is_due(at, &key);
        }
    }

    fn credit(&mut self, at: Timestamp, session: Session, free: bool) {
        let subscription = self.sessions.get(&session);
        let backlog = subscription.and_then(|subscription| self.backlogs.get_mut(subscription));
        let Some(backlog) = backlog else { return };
        if !free {
            backlog.free.remove(&session);
        } else if backlog.free.insert(session) && backlog.free.len() == 1 {
            backlog.free_since = at;
        }
    }
}

impl Backlog {
    fn overdue(&self, now: Timestamp, up_since: Timestamp) -> Option<MessageId> {
        let (due_since, message) = self.by_time.first()?;
        let since = up_since.max(self.free_since).max(*due_since);
        (!self.free.is_empty() && now.since(since) > WAIT_MAX).then_some(*message)
    }

    fn stored(&mut self, at: Timestamp, lane: Option<&Key>, message: MessageId) {
        match lane {
            Some(key) => {
                let lane = self.lanes.entry(key.clone()).or_default();
                lane.insert(message, false);
                self.front_is_due(at, key);
            }
            None => self.is_due(at, message),
        }
    }

    fn delivered(&mut self, at: Timestamp, lane: Option<Key>, message: MessageId) {
        self.is_not_due(message);
        if let Some(key) = lane {
            let lane = self.lanes.entry(key.clone()).or_default();
            lane.insert(message, true);
            self.front_is_due(at, &key);
        }
    }

    /// Only the first of a lane can be due. The second may have been, if it was known first.
    fn front_is_due(&mut self, at: Timestamp, key: &Key) {
        if self.moving.contains(key) {
            return;
        }
        let lane = self.lanes.get(key).into_iter().flatten();
        let mut front = lane.take(2).map(|(id, delivered)| (*id, *delivered));
        let (first, second) = (front.next(), front.next());
        if let Some((message, false)) = first {
            self.is_due(at, message);
        }
        if let Some((message, _)) = second {
            self.is_not_due(message);
        }
    }

    fn is_due(&mut self, at: Timestamp, message: MessageId) {
        if let std::collections::btree_map::Entry::Vacant(entry) = self.due.entry(message) {
            entry.insert(at);
            self.by_time.insert((at, message));
        }
    }

    fn is_not_due(&mut self, message: MessageId) {
        if let Some(since) = self.due.remove(&message) {
            self.by_time.remove(&(since, message));
        }
    }

    fn nothing_is_due(&mut self) {
        self.due.clear();
        self.by_time.clear();
    }

    fn lane_is_not_due(&mut self, key: &Key) {
        let lane = self.lanes.get(key).into_iter().flatten();
        let messages: Vec<_> = lane.map(|(message, _)| *message).collect();
        messages
            .into_iter()
            .for_each(|message| self.is_not_due(message));
    }

    /// Somebody may have each message of the lane, seen or not.
    fn lane_may_be_leased(&mut self, key: &Key) {
        self.lane_is_not_due(key);
        let lane = self.lanes.get_mut(key).into_iter().flatten();
        lane.for_each(|(_, delivered)| *delivered = true);
    }
}

fn remove_one(keys: &mut Vec<Key>, key: &Key) {
    let place = keys.iter().position(|moving| moving == key);
    keys.swap_remove(place.expect("what has moved was moving"));
}

//! P2: on an ordered subscription, the deliveries of a key go to the next message, or back.
//!
//! First deliveries come in publish order, and no unacknowledged message that was delivered is
//! stepped over. A message that is stepped over before it was ever delivered shows either as a
//! first delivery behind a later one, or as one that is missing in the end ([P4]).
//!
//! [P4]: super::at_least_once

use std::collections::{BTreeMap, BTreeSet};

use model::MessageId;

use super::Checker;
use super::deliveries::Deliveries;
use crate::history::{Delivered, Event, Key, Subscription, What};

#[derive(Default)]
pub(super) struct KeyOrder {
    deliveries: Deliveries,
    lanes: BTreeMap<(Subscription, Key), Lane>,
}

#[derive(Default)]
struct Lane {
    delivered: BTreeSet<MessageId>,
    previous: MessageId,
}

impl Checker for KeyOrder {
    fn promise(&self) -> &'static str {
        "P2 key order"
    }

    fn event(&mut self, event: &Event) -> Result<(), String> {
        if let What::Delivered(delivered) = &event.what
            && self
                .deliveries
                .in_lane(delivered.subscription, &delivered.key)
        {
            self.delivered(delivered)?;
        }
        self.deliveries.event(&event.what);
        Ok(())
    }
}

impl KeyOrder {
    fn delivered(&mut self, delivered: &Delivered) -> Result<(), String> {
        let lane = (delivered.subscription, delivered.key.clone());
        let lane = self.lanes.entry(lane).or_default();
        let (message, previous) = (delivered.message, lane.previous);
        let newest = lane.delivered.last().copied().unwrap_or_default();
        if lane.delivered.insert(message) && message < newest {
            let what = format!("first delivery of {message} after {newest}: {delivered:?}");
            return Err(what);
        }
        lane.previous = message;
        if message <= previous {
            return Ok(());
        }
        let between = lane
            .delivered
            .range(previous..message)
            .skip_while(|id| **id == previous);
        for skipped in between {
            let subscription = delivered.subscription;
            let settled = self.deliveries.maybe_settled(subscription, *skipped)
                || self.deliveries.is_dead(subscription, *skipped);
            if !settled {
                let what =
                    format!("{message} after {previous} steps over {skipped}: {delivered:?}");
                return Err(what);
            }
        }
        Ok(())
    }
}

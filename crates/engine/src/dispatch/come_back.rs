//! Streams that come back: a frontend opens them again wherever a leader is lost, under new numbers.
//!
//! What a stream got under a logged lease stays with its client, in full, also if the stream does not
//! come back: its frontend may be out of reach, and its client at work. Only when the frontend's
//! process is known to have ended is it released as after any end (see `ended`).

use model::Generation;

use super::dispatcher::Dispatcher;
use super::lease::Lease;
use super::step::Step;
use super::{Credit, OpenSession};
use crate::shard::FailCause;

impl Dispatcher {
    /// A stream is open, perhaps again. Answers what it has of earlier openings: that is now of this
    /// session.
    pub(super) fn come_back(&mut self, step: &mut Step<'_>, open: &OpenSession) -> Credit {
        let mut outstanding = Credit::default();
        let of_stream: Vec<_> = self
            .leases
            .iter()
            .filter(|(_, lease)| lease.logged && lease.stream == Some(open.first))
            // What is being logged goes nowhere, and comes again by itself.
            .filter(|(_, lease)| lease.deadline.is_some() || lease.is_undecided())
            .filter(|(_, lease)| !lease.failing)
            .map(|(message, lease)| (message, arrived(lease, open.received)))
            .collect();
        // In order: the first message of a lane that must be sent again comes first.
        for (message, arrived) in of_stream {
            if model::sabotage!("stream-comes-back-for-nothing") {
                continue;
            }
            match arrived || model::sabotage!("undelivered-keeps-its-lease") {
                true => outstanding.add(self.leases.trust(message, open.session)),
                false => self.fail(step, message, FailCause::Returned, None),
            }
        }
        match model::sabotage!("stream-comes-back-with-empty-hands") {
            true => Credit::default(),
            false => outstanding,
        }
    }
}

/// Whether a delivery has arrived where its stream was open. Deliveries to one stream are numbered
/// in the order in which they are sent, in each term anew; and what had not arrived by the time of
/// an earlier opening was released then.
fn arrived(lease: &Lease, received: Option<Generation>) -> bool {
    // The client has asked for something: it has it.
    if lease.extended || lease.is_undecided() {
        return true;
    }
    // Nobody can tell: the client may have it.
    if lease.brought && !model::sabotage!("brought-delivery-counts-as-lost") {
        return true;
    }
    let order = |delivery: Generation| (delivery.term, delivery.counter);
    received.is_some_and(|newest| order(lease.generation) <= order(newest))
}

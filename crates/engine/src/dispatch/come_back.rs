//! Streams that come back: a frontend opens them again wherever a leader is lost, under new numbers.
//!
//! What a stream got under a logged lease stays with its client, in full, also if the stream does not
//! come back: its frontend may be out of reach, and its client at work. Only when the frontend's
//! process is known to have ended is it released as after any end (see `ended`).

use model::{Generation, SessionId};

use super::dispatcher::Dispatcher;
use super::lease::Lease;
use super::step::Step;
use crate::shard::FailCause;

impl Dispatcher {
    /// A stream is open again, and has had everything up to `received`.
    pub(super) fn come_back(
        &mut self,
        step: &mut Step<'_>,
        stream: SessionId,
        received: Option<Generation>,
    ) {
        let of_stream: Vec<_> = self
            .leases
            .iter()
            .filter(|(_, lease)| lease.logged && lease.is_unconfirmed_of(stream))
            // What is being logged goes nowhere, and comes again by itself.
            .filter(|(_, lease)| lease.deadline.is_some() || lease.is_undecided())
            .map(|(message, lease)| (message, arrived(lease, received)))
            .collect();
        // In order: the first message of a lane that must be sent again comes first.
        for (message, arrived) in of_stream {
            if model::sabotage!("stream-comes-back-for-nothing") {
                continue;
            }
            match arrived || model::sabotage!("undelivered-keeps-its-lease") {
                true => self.leases.trust(message),
                false => self.fail(step, message, FailCause::Returned, None),
            }
        }
    }
}

/// Whether a delivery has arrived where its stream was open. Deliveries to one stream are numbered
/// in the order in which they are sent, in each term anew; and what had not arrived by the time of
/// an earlier opening was released then.
fn arrived(lease: &Lease, received: Option<Generation>) -> bool {
    // The client has asked for something: it has it.
    if lease.is_undecided() {
        return true;
    }
    let order = |delivery: Generation| (delivery.term, delivery.counter);
    received.is_some_and(|newest| order(lease.generation) <= order(newest))
}

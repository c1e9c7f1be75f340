//! Streams that come back: a frontend opens them again wherever a leader is lost, under new numbers.
//!
//! What a stream got under a logged lease stays with its client, in full, also if the stream does not
//! come back: its frontend may be out of reach, and its client at work. Only when the frontend's
//! process is known to have ended is it released as after any end (see `ended`).
//!
//! Leases that are not logged are those of this leader, and may end too soon without harm: they wait
//! for the stream only as long as a frontend that is well takes to come back. With it they are what
//! they were, except for what never arrived, which is sent again at once.

use model::{Generation, MessageId};

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
            .filter(|(_, lease)| lease.stream == Some(open.first))
            // What is being logged goes nowhere, and comes again by itself.
            .filter(|(_, lease)| lease.deadline.is_some() || lease.is_undecided())
            .filter(|(_, lease)| !lease.failing)
            .map(|(message, lease)| (message, arrived(lease, open.received)))
            .collect();
        // In order: the first message of a lane that must be sent again comes first.
        for (message, arrived) in of_stream {
            // One before it in its lane that never arrived has taken it along.
            if !self.leases.contains(message) || model::sabotage!("stream-comes-back-for-nothing") {
                continue;
            }
            match arrived || model::sabotage!("undelivered-keeps-its-lease") {
                true => outstanding.add(self.keep(message, open)),
                false => self.fail(step, message, FailCause::Returned, None),
            }
        }
        match model::sabotage!("stream-comes-back-with-empty-hands") {
            true => Credit::default(),
            false => outstanding,
        }
    }

    /// The stream that has a message goes on as this session, and so does the key if it was there.
    fn keep(&mut self, message: MessageId, open: &OpenSession) -> Credit {
        let lease = self.leases.get(message);
        let lease = lease.expect("callers have just seen the lease");
        let (strand, before) = (lease.strand, lease.session);
        if let Some(lane) = self.lanes.get_mut(&strand)
            && let Some(holder) = &mut lane.holder
            && Some(holder.session) == before
        {
            holder.session = open.session;
        }
        self.leases.trust(message, open.session)
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

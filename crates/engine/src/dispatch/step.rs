//! What one step works with.

use std::collections::BTreeMap;

use model::{Incarnation, Timestamp};

use super::ended::EndedSessions;
use super::{ForwardId, Output};
use crate::kv::View;

/// The moment, the state, and where outputs go.
pub(super) struct Step<'s> {
    /// The leader's monotonic clock.
    pub(super) now: Timestamp,
    /// At least as new as every effect that the leader has heard of. It may go on while it is read.
    pub(super) view: &'s dyn View,
    /// Sessions that have ended with the process of their frontend.
    pub(super) ended: &'s mut EndedSessions,
    /// Dead letters on their way, of all dispatchers.
    pub(super) forwards: &'s mut Forwards,
    /// What the shell is to do.
    pub(super) out: &'s mut Vec<Output>,
}

/// Which subscription a dead letter comes from.
#[derive(Debug, Default)]
pub(super) struct Forwards {
    sent_off: u64,
    from: BTreeMap<ForwardId, Incarnation>,
}

impl Forwards {
    /// Names a dead letter.
    pub(super) fn begin(&mut self, subscription: Incarnation) -> ForwardId {
        self.sent_off += 1;
        let forward = ForwardId(self.sent_off);
        self.from.insert(forward, subscription);
        forward
    }

    /// The dead letter needs no name any more.
    pub(super) fn end(&mut self, forward: ForwardId) {
        self.from.remove(&forward);
    }

    pub(super) fn subscription(&self, forward: ForwardId) -> Option<Incarnation> {
        self.from.get(&forward).copied()
    }

    /// The subscription is gone.
    pub(super) fn drop_all_of(&mut self, subscription: Incarnation) {
        self.from.retain(|_, from| *from != subscription);
    }
}

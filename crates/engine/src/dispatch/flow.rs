//! Flow control: what a grant allows, and what was made of it.

use model::limits::{RESPONSE_BYTES_MAX, RESPONSE_MESSAGES_MAX};

use super::{Credit, Delivered};

/// One response at most.
pub(super) const RESPONSE: Credit = Credit {
    messages: RESPONSE_MESSAGES_MAX as u32,
    bytes: RESPONSE_BYTES_MAX as u64,
};

impl Credit {
    /// One message of so many bytes.
    pub(super) fn of(bytes: u64) -> Self {
        Credit { messages: 1, bytes }
    }

    pub(super) fn add(&mut self, more: Credit) {
        self.messages = self.messages.saturating_add(more.messages);
        self.bytes = self.bytes.saturating_add(more.bytes);
    }

    pub(super) fn subtract(&mut self, less: Credit) {
        self.messages = self.messages.saturating_sub(less.messages);
        self.bytes = self.bytes.saturating_sub(less.bytes);
    }

    pub(super) fn at_most(self, limit: Credit) -> Self {
        Credit {
            messages: self.messages.min(limit.messages),
            bytes: self.bytes.min(limit.bytes),
        }
    }
}

/// The deliveries that are gathered for one grant.
#[derive(Debug)]
pub(super) struct Batch {
    granted: Credit,
    sent: Credit,
    /// Lanes that go back before their messages can follow: they will need some of the credit.
    rewinds: u32,
    deliveries: Vec<Delivered>,
}

impl Batch {
    pub(super) fn new(granted: Credit) -> Self {
        Batch {
            granted,
            sent: Credit::default(),
            rewinds: 0,
            deliveries: Vec::new(),
        }
    }

    /// Whether one more message may be sent. The message that crosses a limit of bytes is sent,
    /// the one after it is not.
    pub(super) fn has_room(&self) -> bool {
        let limit = Credit {
            messages: RESPONSE.messages,
            bytes: 2 * RESPONSE.bytes,
        };
        let limit = self.granted.at_most(limit);
        self.sent.messages + self.rewinds < limit.messages && self.sent.bytes < limit.bytes
    }

    pub(super) fn push(&mut self, delivery: Delivered, bytes: u64) {
        self.sent.add(Credit::of(bytes));
        self.deliveries.push(delivery);
    }

    pub(super) fn count_rewind(&mut self) {
        self.rewinds += 1;
    }

    /// Whether the grant had better wait for rewinds than be used up by nothing.
    pub(super) fn waits_for_rewinds(&self) -> bool {
        self.deliveries.is_empty() && self.rewinds > 0
    }

    pub(super) fn granted(&self) -> Credit {
        self.granted
    }

    pub(super) fn into_deliveries(self) -> Vec<Delivered> {
        self.deliveries
    }
}

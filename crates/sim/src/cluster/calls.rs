//! Calls of clients that wait for the leader.

use std::collections::BTreeMap;

use engine::dispatch::RequestId;

use crate::history::{Call, DeliveryNumber, Subscription};

/// Who waits for the answer to a request.
#[derive(Clone, Debug)]
pub(super) enum Waiting {
    Publish(Call, u32),
    Acks(Vec<(Call, DeliveryNumber)>),
    Nack(Call),
    Extend(Call),
    Catalogue(Subscription),
}

#[derive(Debug, Default)]
pub(super) struct Calls {
    named: u64,
    requests: u64,
    waiting: BTreeMap<RequestId, Waiting>,
}

impl Calls {
    pub(super) fn name(&mut self) -> Call {
        self.named += 1;
        Call(self.named)
    }

    pub(super) fn wait(&mut self, waiting: Waiting) -> RequestId {
        self.requests += 1;
        let request = RequestId(self.requests);
        self.waiting.insert(request, waiting);
        request
    }

    /// The leader has answered.
    ///
    /// # Panics
    /// When it has answered before.
    pub(super) fn answered(&mut self, request: RequestId) -> Waiting {
        let waiting = self.waiting.remove(&request);
        waiting.unwrap_or_else(|| panic!("{request:?} is answered twice"))
    }

    /// What the leader was asked is never answered.
    pub(super) fn forget_leader(&mut self) {
        self.waiting.clear();
    }
}

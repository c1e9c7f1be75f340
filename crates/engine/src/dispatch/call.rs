//! Calls that wait for the log: each is answered once every one of its ids is decided.

use std::collections::BTreeMap;

use super::{AckReply, ModifyReply, Output, RequestId};

/// One id of a call.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slot {
    pub(super) request: RequestId,
    pub(super) at: usize,
}

/// The calls of one subscription.
#[derive(Debug, Default)]
pub(super) struct Calls {
    acks: BTreeMap<RequestId, Call<AckReply>>,
    changes: BTreeMap<RequestId, Call<ModifyReply>>,
}

#[derive(Debug)]
struct Call<R> {
    replies: Vec<R>,
    missing: usize,
}

impl<R: Copy> Call<R> {
    /// Whether that was the last one.
    fn answer(&mut self, at: usize, reply: R) -> bool {
        self.replies[at] = reply;
        self.missing -= 1;
        self.missing == 0
    }
}

impl Calls {
    /// Opens an Acknowledge of `ids` ids.
    pub(super) fn open_ack(&mut self, request: RequestId, ids: usize) {
        let call = Call {
            replies: vec![AckReply::Stale; ids],
            missing: ids,
        };
        self.acks.insert(request, call);
    }

    /// Opens a ModifyDeadline of `ids` ids.
    pub(super) fn open_change(&mut self, request: RequestId, ids: usize) {
        let call = Call {
            replies: vec![ModifyReply::Stale; ids],
            missing: ids,
        };
        self.changes.insert(request, call);
    }

    /// Answers one id, and with the last one the call.
    pub(super) fn answer_ack(&mut self, slot: Slot, reply: AckReply, out: &mut Vec<Output>) {
        let request = slot.request;
        let call = self.acks.get_mut(&request);
        let call = call.expect("a call stays until each of its ids is answered once");
        if call.answer(slot.at, reply) {
            let replies = std::mem::take(&mut call.replies);
            self.acks.remove(&request);
            out.push(Output::Acknowledged { request, replies });
        }
    }

    /// Answers one id, and with the last one the call.
    pub(super) fn answer_change(&mut self, slot: Slot, reply: ModifyReply, out: &mut Vec<Output>) {
        let request = slot.request;
        let call = self.changes.get_mut(&request);
        let call = call.expect("a call stays until each of its ids is answered once");
        if call.answer(slot.at, reply) {
            let replies = std::mem::take(&mut call.replies);
            self.changes.remove(&request);
            out.push(Output::Modified { request, replies });
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.acks.is_empty() && self.changes.is_empty()
    }

    /// Answers every call as it stands: what is not decided yet is stale, since the subscription
    /// is gone.
    pub(super) fn abandon(&mut self, out: &mut Vec<Output>) {
        for (request, Call { replies, .. }) in std::mem::take(&mut self.acks) {
            out.push(Output::Acknowledged { request, replies });
        }
        for (request, Call { replies, .. }) in std::mem::take(&mut self.changes) {
            out.push(Output::Modified { request, replies });
        }
    }
}

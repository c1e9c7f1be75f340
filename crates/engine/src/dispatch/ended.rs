//! Sessions that have ended with the process of their frontend.

use std::collections::BTreeMap;

use model::limits::ENDED_SESSION_RELEASE;
use model::{NodeId, SessionId, Timestamp};

/// How far the sessions of each node have ended with its processes, as far as the leader has heard.
/// It grows with the number of nodes.
#[derive(Debug, Default)]
pub(super) struct EndedSessions(BTreeMap<NodeId, Ended>);

/// What was heard of one node.
#[derive(Clone, Copy, Debug)]
struct Ended {
    /// Sessions with a lower number have ended.
    before: u64,
    /// When that was heard.
    heard: Timestamp,
}

impl EndedSessions {
    /// Notes that sessions have ended; whether that is news.
    pub(super) fn learn(&mut self, node: NodeId, before: u64, now: Timestamp) -> bool {
        let known = self.0.get(&node);
        let known = known.is_some_and(|known| known.before >= before);
        if known || model::sabotage!("ended-process-keeps-leases") {
            return false;
        }
        let heard = now;
        self.0.insert(node, Ended { before, heard });
        true
    }

    pub(super) fn contains(&self, session: SessionId) -> bool {
        self.release(session).is_some()
    }

    /// When whatever a client never confirmed is released, if its stream is one of these.
    pub(super) fn release(&self, stream: SessionId) -> Option<Timestamp> {
        let ended = self.0.get(&stream.node)?;
        let release = ended.heard.plus(ENDED_SESSION_RELEASE);
        (stream.number < ended.before).then_some(release)
    }
}

//! Which other replicas have room on their disks, as they last said: one that is nearly full should
//! not lead.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use model::NodeId;

/// The nodes whose disks are nearly full. Clones are the same.
#[derive(Clone, Default)]
pub(crate) struct Room(Arc<Mutex<BTreeSet<NodeId>>>);

impl Room {
    /// A node says whether its disk is nearly full.
    pub(super) fn heard(&self, node: NodeId, full: bool) {
        let mut nodes = self.full();
        match full {
            true => nodes.insert(node),
            false => nodes.remove(&node),
        };
    }

    /// Whether a node has room, as far as it is known.
    pub(crate) fn is_in(&self, node: NodeId) -> bool {
        !self.full().contains(&node)
    }

    fn full(&self) -> MutexGuard<'_, BTreeSet<NodeId>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

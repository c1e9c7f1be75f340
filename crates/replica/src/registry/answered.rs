//! Who has answered for each registry group: most nodes have no replica of it, and each voter that does
//! not lead costs a question a round trip.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use model::{GroupId, NodeId};

/// The node that has answered last for each group. Clones are the same.
#[derive(Clone, Debug, Default)]
pub(super) struct Answered {
    nodes: Arc<Mutex<BTreeMap<GroupId, NodeId>>>,
}

impl Answered {
    pub(super) fn of(&self, group: GroupId) -> Option<NodeId> {
        self.lock().get(&group).copied()
    }

    pub(super) fn learn(&self, group: GroupId, node: NodeId) {
        self.lock().insert(group, node);
    }

    /// The node has not answered.
    pub(super) fn forget(&self, group: GroupId, node: NodeId) {
        let mut nodes = self.lock();
        if nodes.get(&group) == Some(&node) {
            nodes.remove(&group);
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<GroupId, NodeId>> {
        // Every change of the map is whole.
        self.nodes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

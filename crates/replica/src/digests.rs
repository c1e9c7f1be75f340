//! What the replicas of this node have come to, each as one number: those of other nodes can be
//! compared with it.

use std::sync::Arc;

use engine::Fault;
use engine::table::run::referred_payload;
use model::{GroupId, NodeId};
use store::{Digest, Store};
use tokio::sync::Mutex;

use crate::aside::aside;
use crate::groups::Groups;

/// The replicas of a node, to be compared with those of others. Clones are the same.
#[derive(Clone)]
pub struct Digests {
    groups: Groups,
    store: Store,
    /// One at a time: each reads all that a group keeps.
    turn: Arc<Mutex<()>>,
}

impl Digests {
    pub(crate) fn new(groups: Groups, store: Store) -> Self {
        Digests {
            groups,
            store,
            turn: Arc::default(),
        }
    }

    /// This node.
    #[must_use]
    pub fn node(&self) -> NodeId {
        self.groups.node()
    }

    /// The groups that have a replica on this node.
    #[must_use]
    pub fn groups(&self) -> Vec<GroupId> {
        self.groups.all().keys().copied().collect()
    }

    /// The state of a group's replica on this node: the same on every node whose replica has
    /// applied the same entries. Reads all of it, with the messages, as it is at one moment, and
    /// keeps none of it in memory. `None` when nothing was applied yet.
    ///
    /// # Errors
    /// [`Fault`] when the state can't be read, or is damaged.
    pub async fn digest(&self, group: GroupId) -> Result<Option<Digest>, Fault> {
        let _turn = self.turn.lock().await;
        let store = self.store.clone();
        let digest = aside(&self.store, move || store.digest(group, referred_payload)).await;
        digest.unwrap_or_else(|panicked| std::panic::resume_unwind(panicked.into_panic()))
    }
}

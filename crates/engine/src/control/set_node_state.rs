//! A node is to take part in another way.

use model::NodeId;
use serde::{Deserialize, Serialize};

use super::rejected::{NodeRejected, Stop};
use super::table::node::NodeKey;
use super::{Node, NodeState, Outcome, Reply, read};
use crate::kv::{Overlay, View};

/// Sets how a node takes part. A removed node stays so.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SetNodeState {
    /// The node.
    pub node: NodeId,
    /// What is wanted of it.
    pub state: NodeState,
}

impl SetNodeState {
    pub(super) fn apply(self, overlay: &mut Overlay<'_>) -> Result<Outcome, Stop> {
        let mut node = member(overlay, self.node)?;
        if self.state.keeps_name() {
            self.check_name(overlay, &node)?;
        }
        node.state = self.state;
        overlay.put(&NodeKey { node: self.node }, &node);
        Ok(Outcome::only(Reply::Done))
    }

    /// While it was on its way out, another node may have come under its name.
    fn check_name(self, view: &dyn View, node: &Node) -> Result<(), Stop> {
        let heir = |other: &&Node| {
            other.id != node.id && other.name == node.name && other.state.keeps_name()
        };
        match read::nodes(view)?.iter().find(heir) {
            Some(heir) => Err(Stop::from(NodeRejected::NameTaken {
                name: node.name.clone(),
                node: heir.id,
            })),
            None => Ok(()),
        }
    }
}

/// A node that is in the cluster.
pub(super) fn member(view: &dyn View, id: NodeId) -> Result<Node, Stop> {
    match read::node(view, id)? {
        None => Err(NodeRejected::NotFound(id).into()),
        Some(node) if node.state == NodeState::Removed => Err(NodeRejected::Removed(id).into()),
        Some(node) => Ok(node),
    }
}

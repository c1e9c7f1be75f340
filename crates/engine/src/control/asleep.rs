//! A node holds no catalogue lease any more.

use model::{Boot, NodeId};
use serde::{Deserialize, Serialize};

use super::rejected::Stop;
use super::table::awake_node::AwakeNode;
use super::table::node::NodeKey;
use super::{Outcome, Reply};
use crate::kv::{Overlay, ViewExt};

/// Says that this life of a node holds no catalogue lease, since it gave it up or let it run out.
/// No change waits for the node until it is [`Awake`](super::Awake) again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Asleep {
    /// The node.
    pub node: NodeId,
    /// Its life. Of another one this says nothing.
    pub boot: Boot,
}

impl Asleep {
    pub(super) fn apply(self, overlay: &mut Overlay<'_>) -> Result<Outcome, Stop> {
        let key = NodeKey { node: self.node };
        let known = overlay.row::<AwakeNode>(&key)?;
        if known.is_some_and(|known| known.boot == self.boot) {
            overlay.delete::<AwakeNode>(&key);
        }
        Ok(Outcome::only(Reply::Done))
    }
}

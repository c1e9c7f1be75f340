//! A node may hold a catalogue lease from now on.

use model::{Boot, NodeId};
use serde::{Deserialize, Serialize};

use super::rejected::{NodeRejected, Stop};
use super::set_node_state::member;
use super::table::awake_node::AwakeNode;
use super::table::node::NodeKey;
use super::{Outcome, Reply};
use crate::kv::{Overlay, ViewExt};

/// Says that this life of a node may be granted catalogue leases, and that no earlier one may:
/// their process has ended. Whoever leads the control group from then on presumes such a lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Awake {
    /// The node.
    pub node: NodeId,
    /// Its life.
    pub boot: Boot,
}

impl Awake {
    pub(super) fn apply(self, overlay: &mut Overlay<'_>) -> Result<Outcome, Stop> {
        member(overlay, self.node)?;
        let key = NodeKey { node: self.node };
        if let Some(known) = overlay.row::<AwakeNode>(&key)?
            && known.boot > self.boot
        {
            // What an earlier life said arrives late.
            return Err(NodeRejected::Restarted(self.node).into());
        }
        overlay.put(&key, &AwakeNode { boot: self.boot });
        Ok(Outcome::only(Reply::Done))
    }
}

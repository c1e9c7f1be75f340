//! A node has other addresses, or stands elsewhere in its region.

use model::{NodeId, ZoneName};
use serde::{Deserialize, Serialize};

use super::rejected::Stop;
use super::set_node_state::member;
use super::table::node::NodeKey;
use super::{Outcome, Reply};
use crate::kv::Overlay;

/// Says where a node is now. Its name and region never change: that would be another node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UpdateNode {
    /// The node.
    pub node: NodeId,
    /// Where other nodes reach it.
    pub peer_address: String,
    /// Where clients reach it.
    pub client_address: String,
    /// What it shares a fate with, inside its region.
    pub zone: ZoneName,
}

impl UpdateNode {
    pub(super) fn apply(&self, overlay: &mut Overlay<'_>) -> Result<Outcome, Stop> {
        let mut node = member(overlay, self.node)?;
        node.peer_address = self.peer_address.clone();
        node.client_address = self.client_address.clone();
        node.zone = self.zone.clone();
        overlay.put(&NodeKey { node: self.node }, &node);
        Ok(Outcome::only(Reply::Done))
    }
}

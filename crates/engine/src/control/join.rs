//! A node comes to the cluster.

use model::limits::NODES_MAX;
use model::{NodeId, NodeName, RegionName, ZoneName};
use serde::{Deserialize, Serialize};

use super::rejected::{NodeRejected, Stop};
use super::table::NameKey;
use super::table::cluster::ClusterKey;
use super::table::node::NodeKey;
use super::{Node, NodeState, Outcome, Region, Reply, read};
use crate::Fault;
use crate::kv::{Overlay, ViewExt};

/// Lets a node in, under the next id. Repeated by the same disk, it gives the same id.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NewNode {
    /// What its operator calls it. A node of that name must be on its way out, or removed.
    pub name: NodeName,
    /// Where it is.
    pub region: RegionName,
    /// What it shares a fate with, inside its region.
    pub zone: ZoneName,
    /// Where other nodes reach it: a host name or address, and a port.
    pub peer_address: String,
    /// Where clients reach it, in the same form.
    pub client_address: String,
    /// Chosen by chance when its disk was new.
    pub join: [u8; 16],
}

impl NewNode {
    pub(super) fn apply(&self, overlay: &mut Overlay<'_>) -> Result<Outcome, Stop> {
        let Some(mut cluster) = read::cluster(overlay)? else {
            return Err(NodeRejected::NotFounded.into());
        };
        let nodes = read::nodes(overlay)?;
        if let Some(known) = nodes.iter().find(|node| node.join == self.join) {
            return match known.state {
                NodeState::Removed => Err(NodeRejected::Removed(known.id).into()),
                _ => Ok(Outcome::only(Reply::Joined(known.id))),
            };
        }
        self.check_room(&nodes)?;
        let id = cluster.next_node;
        cluster.next_node = NodeId(id.0 + 1);
        self.ensure_region(overlay, id, cluster.shards_per_region)?;
        overlay.put(&ClusterKey, &cluster);
        overlay.put(&NodeKey { node: id }, &self.row(id));
        Ok(Outcome::only(Reply::Joined(id)))
    }

    /// The row of the node under its id.
    pub(super) fn row(&self, id: NodeId) -> Node {
        Node {
            id,
            name: self.name.clone(),
            region: self.region.clone(),
            zone: self.zone.clone(),
            peer_address: self.peer_address.clone(),
            client_address: self.client_address.clone(),
            state: NodeState::Active,
            join: self.join,
        }
    }

    fn check_room(&self, nodes: &[Node]) -> Result<(), NodeRejected> {
        let is_in = |node: &&Node| node.state != NodeState::Removed;
        if nodes.iter().filter(is_in).count() >= NODES_MAX {
            return Err(NodeRejected::TooMany);
        }
        let named = |node: &&Node| node.state.keeps_name() && node.name == self.name;
        match nodes.iter().find(named) {
            Some(holder) => Err(NodeRejected::NameTaken {
                name: self.name.clone(),
                node: holder.id,
            }),
            None => Ok(()),
        }
    }

    /// The first node of a region brings the region with it.
    fn ensure_region(
        &self,
        overlay: &mut Overlay<'_>,
        id: NodeId,
        shards_per_region: u16,
    ) -> Result<(), Fault> {
        let key = NameKey::from(&self.region);
        if overlay.row::<Region>(&key)?.is_none() {
            let region = Region::new(self.region.clone(), id, shards_per_region);
            overlay.put(&key, &region);
        }
        Ok(())
    }
}

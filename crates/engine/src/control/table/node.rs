//! The nodes of the cluster, by id. A row stays when its node is gone: ids are never reused.

use std::fmt;

use model::{NodeId, NodeName, RegionName, ZoneName};
use serde::{Deserialize, Serialize};

use crate::table::{Row, fixed_key};

/// By id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct NodeKey {
    /// The node.
    pub node: NodeId,
}

/// A node as the cluster knows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Node {
    /// Its id, from the log.
    pub id: NodeId,
    /// What its operator calls it.
    pub name: NodeName,
    /// Where it is. Never changes.
    pub region: RegionName,
    /// What it shares a fate with, inside its region.
    pub zone: ZoneName,
    /// Where other nodes reach it: a host name or address, and a port.
    pub peer_address: String,
    /// Where clients reach it, in the same form.
    pub client_address: String,
    /// Whether it takes part.
    pub state: NodeState,
    /// What it chose by chance when its disk was new: a join that is repeated gets the same id,
    /// an emptied disk another.
    pub join: [u8; 16],
}

/// Whether a node takes part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum NodeState {
    /// It has its share of the replicas.
    Active,
    /// It keeps its replicas, and gets no new ones: its operator is about to stop it for a while.
    Draining,
    /// Its replicas move to other nodes.
    Decommissioning,
    /// It is out, for ever.
    Removed,
    /// Its disk is gone. Its votes stay with it until another node has come for each; its name is
    /// free for that one.
    Replaced,
}

impl NodeState {
    /// Whether no other node may have its name.
    #[must_use]
    pub fn keeps_name(self) -> bool {
        matches!(self, NodeState::Active | NodeState::Draining)
    }

    /// Whether it may keep the replicas that it has.
    #[must_use]
    pub fn keeps_replicas(self) -> bool {
        self.keeps_name() || self == NodeState::Replaced
    }
}

impl fmt::Display for NodeState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            NodeState::Active => "active",
            NodeState::Draining => "draining",
            NodeState::Decommissioning => "decommissioning",
            NodeState::Removed => "removed",
            NodeState::Replaced => "replaced",
        })
    }
}

impl NodeKey {
    /// The bounds of all nodes.
    #[must_use]
    pub fn all() -> (Self, Self) {
        let at = |number| NodeKey {
            node: NodeId(number),
        };
        (at(0), at(u64::MAX))
    }
}

fixed_key!(NodeKey { node: number });

impl Row for Node {
    const TABLE: u8 = 70;
    type Key = NodeKey;
}

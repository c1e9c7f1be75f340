//! What the catalogue wants, as this node knows it.

use std::collections::BTreeMap;

use engine::control::{Node, NodeState, Placement, read};
use model::{GroupId, NodeId, RegionName, ShardNumber};
use store::Position;

use crate::groups::Groups;
use crate::peer::{PeerAddress, Peers};
use crate::raft::{Core, Stopped};

/// Nodes, and where groups are wanted. Perhaps older than what other nodes know: to act on it
/// must be right in any case, or be refused by the group.
#[derive(Clone, Debug, Default)]
pub(super) struct Wanted {
    /// Up to where the catalogue was applied that it was read from.
    at: Option<Position>,
    nodes: BTreeMap<NodeId, Node>,
    placements: BTreeMap<GroupId, Placement>,
}

impl Wanted {
    /// Reads the catalogue again if it has changed, and answers whether it has.
    ///
    /// # Errors
    /// [`Stopped`] when it can't be read.
    pub(super) fn refresh(&mut self, control: &Core) -> Result<bool, Stopped> {
        let at = *control.applied().borrow();
        if at == self.at {
            return Ok(false);
        }
        let catalogue = control.view();
        let nodes = read::nodes(catalogue).map_err(|fault| control.stopped(fault))?;
        let placements = read::placements(catalogue).map_err(|fault| control.stopped(fault))?;
        *self = Wanted {
            at,
            nodes: nodes.into_iter().map(|node| (node.id, node)).collect(),
            placements: placements.into_iter().map(|it| (it.group, it)).collect(),
        };
        Ok(true)
    }

    /// The groups that this node leads, and where they are wanted.
    pub(super) fn led(&self, groups: &Groups) -> Vec<(Core, &Placement)> {
        let cores = groups.all();
        let led = cores
            .values()
            .filter(|core| core.leader() == Some(core.node()));
        led.filter_map(|core| Some((core.clone(), self.placement(core.group())?)))
            .collect()
    }

    /// Where a group is wanted.
    pub(super) fn placement(&self, group: GroupId) -> Option<&Placement> {
        self.placements.get(&group)
    }

    /// All groups.
    pub(super) fn placements(&self) -> impl Iterator<Item = &Placement> {
        self.placements.values()
    }

    /// All shards, each with its voters in the order in which to ask who leads: those at home
    /// first, where the leader lives when all is well.
    pub(super) fn shards(&self) -> impl Iterator<Item = (ShardNumber, Vec<NodeId>)> {
        self.placements.values().filter_map(|placement| {
            let GroupId::Shard(shard) = placement.group else {
                return None;
            };
            let mut voters: Vec<NodeId> = placement.voters.iter().copied().collect();
            voters.sort_by_key(|voter| !self.is_in(*voter, &placement.home));
            Some((shard, voters))
        })
    }

    /// Whether a node takes part with all it has.
    pub(super) fn is_active(&self, node: NodeId) -> bool {
        let node = self.nodes.get(&node);
        node.is_some_and(|node| node.state == NodeState::Active)
    }

    /// Whether a node is in a region.
    pub(super) fn is_in(&self, node: NodeId, region: &RegionName) -> bool {
        self.nodes
            .get(&node)
            .is_some_and(|node| node.region == *region)
    }

    /// Tells where the other nodes are.
    pub(super) fn teach(&self, peers: &Peers) {
        for node in self.nodes.values() {
            match node.state {
                NodeState::Removed => peers.forget(node.id),
                _ => peers.learn(
                    node.id,
                    PeerAddress {
                        name: node.name.clone(),
                        address: node.peer_address.clone(),
                        region: node.region.clone(),
                    },
                ),
            }
        }
    }
}

//! The nodes as a planner sees them: where they are, whether they can be used, how busy they are.

use std::collections::{BTreeMap, BTreeSet};

use model::{NodeId, RegionName, ZoneName};

use crate::control::{Node, NodeState, Placement};

/// Every node that is not removed.
pub(super) struct Sites {
    nodes: BTreeMap<NodeId, Site>,
    regions: BTreeSet<RegionName>,
}

struct Site {
    region: RegionName,
    zone: ZoneName,
    state: NodeState,
    lost: bool,
}

impl Sites {
    pub(super) fn new(nodes: Vec<Node>, lost: &BTreeSet<NodeId>) -> Self {
        let site = |node: Node| {
            let site = Site {
                region: node.region,
                zone: node.zone,
                state: node.state,
                lost: lost.contains(&node.id) || node.state == NodeState::Replaced,
            };
            (node.id, site)
        };
        let is_in = |node: &Node| node.state != NodeState::Removed;
        let nodes: BTreeMap<_, _> = nodes.into_iter().filter(is_in).map(site).collect();
        let staying = nodes.values().filter(|site| site.state.keeps_replicas());
        let regions = staying.map(|site| site.region.clone()).collect();
        Sites { nodes, regions }
    }

    /// The regions that have nodes which stay, lost ones included: a region that is lost for an
    /// hour is no less a region.
    pub(super) fn regions(&self) -> &BTreeSet<RegionName> {
        &self.regions
    }

    /// The nodes that have the catalogue: those that have a disk, until they are removed.
    pub(super) fn present(&self) -> impl Iterator<Item = NodeId> {
        let has_disk = |site: &Site| site.state != NodeState::Replaced;
        let present = self.nodes.iter().filter(move |(_, site)| has_disk(site));
        present.map(|(node, _)| *node)
    }

    /// The nodes on their way out.
    pub(super) fn leaving(&self) -> impl Iterator<Item = NodeId> {
        let leaving = self
            .nodes
            .iter()
            .filter(|(_, site)| !site.state.keeps_name());
        leaving.map(|(node, _)| *node)
    }

    /// Where a node is.
    pub(super) fn region(&self, node: NodeId) -> Option<&RegionName> {
        self.nodes.get(&node).map(|site| &site.region)
    }

    /// Which zone of its region a node is in.
    pub(super) fn zone(&self, node: NodeId) -> Option<&ZoneName> {
        self.nodes.get(&node).map(|site| &site.zone)
    }

    /// Whether a node takes part in votes as far as is known.
    pub(super) fn is_well(&self, node: NodeId) -> bool {
        self.nodes.get(&node).is_some_and(|site| !site.lost)
    }

    /// Whether a node may get replicas.
    pub(super) fn may_come(&self, node: NodeId) -> bool {
        let site = self.nodes.get(&node);
        site.is_some_and(|site| site.state == NodeState::Active && !site.lost)
    }

    /// Whether a node may keep the replicas that it has. One that is lost may, until there is
    /// another in its place.
    pub(super) fn may_stay(&self, node: NodeId) -> bool {
        let site = self.nodes.get(&node);
        site.is_some_and(|site| site.state.keeps_replicas())
    }

    /// The nodes of a region that may vote in a group with these voters.
    pub(super) fn candidates(
        &self,
        region: &RegionName,
        voters: &BTreeSet<NodeId>,
    ) -> BTreeSet<NodeId> {
        let here = self.nodes.iter().filter(|(_, site)| site.region == *region);
        here.map(|(node, _)| *node)
            .filter(|node| match voters.contains(node) {
                true => self.may_stay(*node),
                false => self.may_come(*node),
            })
            .collect()
    }
}

/// In how many groups each node votes.
pub(super) struct Load(BTreeMap<NodeId, usize>);

impl Load {
    pub(super) fn of(placements: &[Placement]) -> Self {
        let mut load = Load(BTreeMap::new());
        for placement in placements {
            load.add(&placement.voters);
        }
        load
    }

    pub(super) fn get(&self, node: NodeId) -> usize {
        self.0.get(&node).copied().unwrap_or_default()
    }

    pub(super) fn add(&mut self, voters: &BTreeSet<NodeId>) {
        for node in voters {
            *self.0.entry(*node).or_default() += 1;
        }
    }

    /// One group has these voters in place of those.
    pub(super) fn change(&mut self, old: &BTreeSet<NodeId>, new: &BTreeSet<NodeId>) {
        for node in old {
            *self.0.entry(*node).or_default() -= 1;
        }
        self.add(new);
    }
}

//! Regions, nodes and shards as an operator asks about them.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use model::{GroupId, NodeId, ShardNumber};

use super::{nodes, placements, regions};
use crate::Fault;
use crate::control::{Node, NodeState, Placement, Region};
use crate::kv::View;

/// A region, what is in it, and what goes with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegionDescription {
    /// The region.
    pub region: Region,
    /// Its nodes by id, without removed ones.
    pub nodes: Vec<Node>,
    /// The shards that are at home in it.
    pub shards: Vec<ShardNumber>,
    /// The groups that can't go on while the region is lost: the control group (no resource can
    /// be changed, and soon nothing resolved), registry groups (no new key can be published), and
    /// shards (their messages wait).
    pub lost_with_it: Vec<GroupId>,
}

/// A node and what it does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeDescription {
    /// The node.
    pub node: Node,
    /// The groups in which it is wanted to vote.
    pub votes: Vec<GroupId>,
    /// The groups of which it is wanted to have a copy without a vote.
    pub learns: Vec<GroupId>,
}

/// A shard and what it survives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShardDescription {
    /// Its number.
    pub number: ShardNumber,
    /// Where it is wanted.
    pub placement: Placement,
    /// Its voters.
    pub voters: Vec<Node>,
    /// The largest thing that it survives the loss of, whatever its goal says.
    pub survives: Survives,
}

/// The largest thing that can be lost without losing the majority of a group's voters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Survives {
    /// It has one voter, or two.
    Nothing,
    /// Any one node.
    Node,
    /// Any one zone.
    Zone,
    /// Any one region.
    Region,
}

/// Every region of the cluster, the oldest first.
///
/// # Errors
/// [`Fault`] when the state can't be read.
pub fn describe_regions(view: &dyn View) -> Result<Vec<RegionDescription>, Fault> {
    let placements = placements(view)?;
    let nodes: Vec<Node> = nodes(view)?.into_iter().filter(is_in).collect();
    let mut regions = regions(view)?;
    regions.sort_by_key(|region| region.first_node);
    let describe = |region: Region| {
        let here = |node: &&Node| node.region == region.name;
        let nodes_here: Vec<Node> = nodes.iter().filter(here).cloned().collect();
        let ids: BTreeSet<NodeId> = nodes_here.iter().map(|node| node.id).collect();
        let at_home = placements.iter().filter(|it| it.home == region.name);
        let lost = placements.iter().filter(|it| !outlives(it, &ids));
        RegionDescription {
            shards: at_home.filter_map(|it| shard_number(it.group)).collect(),
            lost_with_it: lost.map(|it| it.group).collect(),
            nodes: nodes_here,
            region,
        }
    };
    Ok(regions.into_iter().map(describe).collect())
}

/// Every node by id, removed ones included.
///
/// # Errors
/// [`Fault`] when the state can't be read.
pub fn describe_nodes(view: &dyn View) -> Result<Vec<NodeDescription>, Fault> {
    let placements = placements(view)?;
    let groups = |has: &dyn Fn(&Placement) -> bool| -> Vec<GroupId> {
        let having = placements.iter().filter(|placement| has(placement));
        having.map(|placement| placement.group).collect()
    };
    let describe = |node: Node| NodeDescription {
        votes: groups(&|placement| placement.voters.contains(&node.id)),
        learns: groups(&|placement| placement.learners.contains(&node.id)),
        node,
    };
    Ok(nodes(view)?.into_iter().map(describe).collect())
}

/// Every shard by number.
///
/// # Errors
/// [`Fault`] when the state can't be read.
pub fn describe_shards(view: &dyn View) -> Result<Vec<ShardDescription>, Fault> {
    let nodes = nodes(view)?;
    let describe = |placement: Placement| {
        let number = shard_number(placement.group)?;
        let votes = |node: &&Node| placement.voters.contains(&node.id);
        let voters: Vec<Node> = nodes.iter().filter(votes).cloned().collect();
        Some(ShardDescription {
            number,
            survives: Survives::of(&voters),
            placement,
            voters,
        })
    };
    let placements = placements(view)?.into_iter();
    Ok(placements.filter_map(describe).collect())
}

fn is_in(node: &Node) -> bool {
    node.state != NodeState::Removed
}

fn shard_number(group: GroupId) -> Option<ShardNumber> {
    match group {
        GroupId::Shard(number) => Some(number),
        GroupId::Control | GroupId::Registry(_) => None,
    }
}

/// Whether a majority is left when all voters go that share any one failure domain.
fn outlives_any<Domain: Ord>(voters: &[Node], domain: impl Fn(&Node) -> Domain) -> bool {
    let mut domains: BTreeMap<Domain, usize> = BTreeMap::new();
    for node in voters {
        *domains.entry(domain(node)).or_default() += 1;
    }
    let mut lost = domains.values();
    lost.all(|lost| (voters.len() - lost) * 2 > voters.len())
}

/// Whether a majority of the group's voters is left without these nodes.
fn outlives(placement: &Placement, lost: &BTreeSet<NodeId>) -> bool {
    let left = placement.voters.difference(lost).count();
    left * 2 > placement.voters.len()
}

impl Survives {
    /// What a group survives that has these voters.
    #[must_use]
    pub fn of(voters: &[Node]) -> Self {
        let zone = |node: &Node| (node.region.clone(), node.zone.clone());
        if outlives_any(voters, |node| node.region.clone()) {
            Survives::Region
        } else if outlives_any(voters, zone) {
            Survives::Zone
        } else if outlives_any(voters, |node| node.id) {
            Survives::Node
        } else {
            Survives::Nothing
        }
    }
}

impl fmt::Display for Survives {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Survives::Nothing => "nothing",
            Survives::Node => "node",
            Survives::Zone => "zone",
            Survives::Region => "region",
        })
    }
}

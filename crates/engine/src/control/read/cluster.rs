//! What the cluster is made of: its regions, its nodes, and where its groups are wanted.

use std::collections::BTreeSet;

use model::{FormatLevel, GroupId, NodeId, RegionName};

use crate::Fault;
use crate::control::table::NameKey;
use crate::control::table::cluster::{Cluster, ClusterKey};
use crate::control::table::format::{Format, FormatKey};
use crate::control::table::node::NodeKey;
use crate::control::table::placement::PlacementKey;
use crate::control::{Node, Placement, Region};
use crate::kv::{View, ViewExt};

/// What was decided when the cluster was founded; `None` before that.
///
/// # Errors
/// [`Fault`] when the state can't be read.
pub fn cluster(view: &dyn View) -> Result<Option<Cluster>, Fault> {
    view.row(&ClusterKey)
}

/// What all nodes of the cluster know to read and write.
///
/// # Errors
/// [`Fault`] when the state can't be read.
pub fn format_level(view: &dyn View) -> Result<FormatLevel, Fault> {
    let format = view.row::<Format>(&FormatKey)?;
    Ok(format.map_or(FormatLevel::FIRST, |format| format.level))
}

/// The node of an id, which may be removed.
///
/// # Errors
/// [`Fault`] when the state can't be read.
pub fn node(view: &dyn View, id: NodeId) -> Result<Option<Node>, Fault> {
    view.row(&NodeKey { node: id })
}

/// All nodes by id, removed ones included.
///
/// # Errors
/// [`Fault`] when the state can't be read.
pub fn nodes(view: &dyn View) -> Result<Vec<Node>, Fault> {
    let (from, to) = NodeKey::all();
    view.rows(&from, &to)
        .map(|row| row.map(|(_, node)| node))
        .collect()
}

/// The region of a name.
///
/// # Errors
/// [`Fault`] when the state can't be read.
pub fn region(view: &dyn View, name: &RegionName) -> Result<Option<Region>, Fault> {
    view.row(&NameKey::from(name))
}

/// All regions by name.
///
/// # Errors
/// [`Fault`] when the state can't be read.
pub fn regions(view: &dyn View) -> Result<Vec<Region>, Fault> {
    let (from, to) = NameKey::all();
    view.rows(&from, &to)
        .map(|row| row.map(|(_, region)| region))
        .collect()
}

/// The regions that have nodes which stay.
///
/// # Errors
/// [`Fault`] when the state can't be read.
pub fn present_regions(view: &dyn View) -> Result<BTreeSet<RegionName>, Fault> {
    let stays = |node: &Node| node.state.keeps_replicas();
    let nodes = nodes(view)?.into_iter().filter(stays);
    Ok(nodes.map(|node| node.region).collect())
}

/// Where the replicas of a group are wanted; `None` if there is no such group.
///
/// # Errors
/// [`Fault`] when the state can't be read.
pub fn placement(view: &dyn View, group: GroupId) -> Result<Option<Placement>, Fault> {
    view.row(&PlacementKey(group))
}

/// Where the replicas of all groups are wanted: of the control group, of the registry groups, and
/// of the shards, each by number.
///
/// # Errors
/// [`Fault`] when the state can't be read.
pub fn placements(view: &dyn View) -> Result<Vec<Placement>, Fault> {
    let (from, to) = PlacementKey::all();
    view.rows(&from, &to)
        .map(|row| row.map(|(_, placement)| placement))
        .collect()
}

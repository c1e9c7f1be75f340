//! What a departure would do, before anyone asks for it.

use std::collections::BTreeSet;

use model::{GroupId, NodeId};

use super::Homes;
use super::sites::{Load, Sites};
use super::target::{self, Wish};
use crate::Fault;
use crate::control::read::{self, Survives};
use crate::control::{Node, NodeState};
use crate::kv::View;

/// What becomes of a group when a node leaves for good.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Consequence {
    /// The group.
    pub group: GroupId,
    /// What it survives as it is placed now.
    pub now: Survives,
    /// What it will survive; `None` where no other node may take its replica, so that the node can
    /// never leave.
    pub then: Option<Survives>,
}

/// The groups that would survive less without a node, or that would keep it.
///
/// # Errors
/// [`Fault`] when the state can't be read.
pub fn departure(
    view: &dyn View,
    lost: &BTreeSet<NodeId>,
    node: NodeId,
) -> Result<Vec<Consequence>, Fault> {
    let placements = read::placements(view)?;
    let mut nodes = read::nodes(view)?;
    for leaving in nodes.iter_mut().filter(|it| it.id == node) {
        leaving.state = NodeState::Decommissioning;
    }
    let sites = Sites::new(nodes.clone(), lost);
    let load = Load::of(&placements);
    let mut homes = Homes::of(&placements);
    let survives = |voters: &BTreeSet<NodeId>| {
        let voters = nodes.iter().filter(|node| voters.contains(&node.id));
        Survives::of(&voters.cloned().collect::<Vec<Node>>())
    };
    let mut consequences = Vec::new();
    for placement in placements.iter().filter(|it| it.voters.contains(&node)) {
        let home = homes.home(&sites, placement);
        let voters = target::voters(&sites, &load, &Wish::of(placement, &home));
        let now = survives(&placement.voters);
        let then = (!voters.contains(&node)).then(|| survives(&voters));
        if then.is_none_or(|then| then < now) {
            let group = placement.group;
            consequences.push(Consequence { group, now, then });
        }
    }
    Ok(consequences)
}

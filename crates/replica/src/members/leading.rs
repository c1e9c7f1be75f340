//! Which of its voters should lead a group.

use engine::control::Placement;
use model::NodeId;

use super::wanted::Wanted;
use crate::raft::Core;

/// Who should lead instead of the present leader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Heir {
    pub(super) node: NodeId,
    /// Whether the present leader is to go, so that any other voter is better.
    pub(super) urgent: bool,
}

/// How well a voter fits as the leader. Later ones are better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Fit {
    /// It is on its way out: of the node, or of the group.
    Goes,
    /// It is away from home.
    Away,
    /// It is at home.
    Home,
    /// It is at home, and it is its turn among those that are: so leaders spread over the nodes.
    Turn,
}

/// The voter that should lead a group of this node, among those that are `able` to take over now.
/// A leader that `leaves` is never the right one.
pub(super) fn heir(
    wanted: &Wanted,
    placement: &Placement,
    core: &Core,
    able: impl Fn(NodeId) -> bool,
    leaves: bool,
) -> Option<Heir> {
    let members = core.members();
    let [voters] = &members.voters[..] else {
        return None;
    };
    let fit = |node| fit(wanted, placement, node);
    let present = match leaves {
        true => Fit::Goes,
        false => fit(core.node()),
    };
    let others = voters.iter().filter(|node| **node != core.node());
    let able = others.filter(|node| able(**node));
    let best = able.max_by_key(|node| fit(**node))?;
    let urgent = present == Fit::Goes;
    let better = fit(*best) > present || (leaves && urgent);
    better.then_some(Heir {
        node: *best,
        urgent,
    })
}

fn fit(wanted: &Wanted, placement: &Placement, node: NodeId) -> Fit {
    let stays = |node: &NodeId| wanted.is_active(*node) && placement.voters.contains(node);
    if !stays(&node) {
        return Fit::Goes;
    }
    if !wanted.is_in(node, &placement.home) {
        return Fit::Away;
    }
    let at_home = placement.voters.iter().filter(|node| stays(node));
    let at_home: Vec<_> = at_home
        .filter(|node| wanted.is_in(**node, &placement.home))
        .collect();
    let turn = placement.group.to_number() as usize % at_home.len();
    match *at_home[turn] == node {
        true => Fit::Turn,
        false => Fit::Home,
    }
}

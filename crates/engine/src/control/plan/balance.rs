//! Nodes of one region share their work.

use model::NodeId;

use super::sites::{Load, Sites};
use super::{Health, learners, standing, step};
use crate::control::Placement;

/// A replica moves to another node only if that one votes in so many groups fewer: with less, the
/// two would only change places.
const LOAD_DIFFERENCE_MIN: usize = 2;

/// A placement in which a vote goes from a busy node to an idle one of the same region, if there
/// are such nodes and the group's zones are as different afterwards.
pub(super) fn step(
    sites: &Sites,
    health: &Health,
    load: &Load,
    placements: &[Placement],
) -> Option<Placement> {
    let may_move = |placement: &&Placement| {
        let standing = standing(sites, health, placement);
        placement.founded && standing == Some(&placement.voters)
    };
    placements.iter().filter(may_move).find_map(|placement| {
        let (busy, idle) = exchange(sites, load, placement)?;
        let mut target = placement.voters.clone();
        target.remove(&busy);
        target.insert(idle);
        let voters = step::towards(sites, &placement.voters, &target);
        let learners = learners(sites, placement.group, &voters);
        let moved = Placement {
            voters,
            learners,
            ..placement.clone()
        };
        (moved != *placement).then_some(moved)
    })
}

/// Who might give the vote in a group to whom.
fn exchange(sites: &Sites, load: &Load, placement: &Placement) -> Option<(NodeId, NodeId)> {
    let voters = &placement.voters;
    let zone_mates = |node: NodeId, but: NodeId| {
        let place = |node| (sites.region(node), sites.zone(node));
        let others = voters.iter().filter(|other| **other != but);
        others.filter(|other| place(**other) == place(node)).count()
    };
    let fits = |busy: NodeId, idle: NodeId| {
        load.get(busy) >= load.get(idle) + LOAD_DIFFERENCE_MIN
            && zone_mates(idle, busy) <= zone_mates(busy, busy)
    };
    voters.iter().find_map(|busy| {
        let region = sites.region(*busy)?;
        let mut idle = sites.candidates(region, voters);
        idle.retain(|node| !voters.contains(node) && fits(*busy, *node));
        let idlest = idle.into_iter().min_by_key(|node| (load.get(*node), *node));
        idlest.map(|idle| (*busy, idle))
    })
}

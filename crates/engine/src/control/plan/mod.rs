//! Where groups should live: what the control group's leader proposes next.
//!
//! The plan is level-triggered: it is made again from the tables whenever they or the health of
//! nodes have changed, and what was proposed in vain is proposed again. One plan changes at most
//! one voter of each group (one comes, one goes, or both), and never without a majority that is
//! well on either side of the change. What fits stays: nothing moves for beauty, except that nodes
//! of one region share their work.

mod balance;
mod departure;
mod shards;
mod sites;
mod step;
mod target;

pub use departure::{Consequence, departure};

use std::collections::{BTreeMap, BTreeSet};

use model::{GroupId, NodeId, RegionName, SurvivalGoal};

use self::sites::{Load, Sites};
use self::target::Wish;
use super::{Command, NodeState, Place, Placement, SetNodeState, read};
use crate::Fault;
use crate::kv::View;

/// What the control group's leader knows of the cluster beside its tables.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Health {
    /// Nodes that were silent for so long that they are to be replaced.
    pub lost: BTreeSet<NodeId>,
    /// Who votes in each group, as its leader last said. A group whose voters are not those of its
    /// placement is still on its way, and gets no next step. Of a group that is missing here
    /// nothing is known: it is taken to have arrived, but no node is let go for it.
    pub voters: BTreeMap<GroupId, BTreeSet<NodeId>>,
}

/// The commands that bring the cluster one step nearer to where it should be; none when it is
/// there.
///
/// # Errors
/// [`Fault`] when the state can't be read.
pub fn plan(view: &dyn View, health: &Health) -> Result<Vec<Command>, Fault> {
    let Some(cluster) = read::cluster(view)? else {
        return Ok(Vec::new());
    };
    let placements = read::placements(view)?;
    let sites = Sites::new(read::nodes(view)?, &health.lost);
    let mut load = Load::of(&placements);

    let mut homes = Homes::of(&placements);
    let better = |placement: &Placement| {
        let home = homes.home(&sites, placement);
        better(&sites, health, &mut load, placement, home)
    };
    let mut wanted: Vec<_> = placements.iter().filter_map(better).collect();
    let regions = read::regions(view)?;
    let missing = shards::missing(&sites, &mut load, &regions, &placements, cluster.next_shard);
    wanted.extend(missing);
    if wanted.is_empty() {
        wanted.extend(balance::step(&sites, health, &load, &placements));
    }

    let mut commands = Vec::new();
    if !wanted.is_empty() {
        commands.push(Command::Place(Place(wanted)));
    }
    commands.extend(departures(&sites, health, &placements));
    Ok(commands)
}

/// The placement with the next step of its group, if there is one.
fn better(
    sites: &Sites,
    health: &Health,
    load: &mut Load,
    placement: &Placement,
    home: RegionName,
) -> Option<Placement> {
    // Its founders are still at it.
    if !placement.founded {
        return None;
    }
    let voters = match standing(sites, health, placement) {
        Some(present) => {
            let wish = Wish {
                voters: present,
                ..Wish::of(placement, &home)
            };
            step::towards(sites, present, &target::voters(sites, load, &wish))
        }
        None => placement.voters.clone(),
    };
    let learners = learners(sites, placement.group, &voters);
    let better = Placement {
        home,
        voters,
        learners,
        ..placement.clone()
    };
    load.change(&placement.voters, &better.voters);
    (better != *placement).then_some(better)
}

/// Every node has the catalogue, until it is removed. Other groups have no learners.
fn learners(sites: &Sites, group: GroupId, voters: &BTreeSet<NodeId>) -> BTreeSet<NodeId> {
    match group {
        GroupId::Control => sites
            .present()
            .filter(|node| !voters.contains(node))
            .collect(),
        GroupId::Registry(_) | GroupId::Shard(_) => BTreeSet::new(),
    }
}

/// The voters from which a group takes its next step, if it may: those that are wanted, once they
/// vote. Where one that was to come is gone meanwhile they never will, and it goes on from those that
/// do.
fn standing<'a>(
    sites: &Sites,
    health: &'a Health,
    placement: &'a Placement,
) -> Option<&'a BTreeSet<NodeId>> {
    let Some(voters) = health.voters.get(&placement.group) else {
        return Some(&placement.voters);
    };
    let mut coming = placement.voters.difference(voters);
    let may_go_on = *voters == placement.voters || coming.any(|node| !sites.may_come(*node));
    may_go_on.then_some(voters)
}

/// Nodes on their way out that vote nowhere any more, by word of every group's leader.
fn departures(
    sites: &Sites,
    health: &Health,
    placements: &[Placement],
) -> impl Iterator<Item = Command> {
    let votes = |node: NodeId, placement: &Placement| {
        let really = health.voters.get(&placement.group);
        placement.voters.contains(&node) || really.is_none_or(|voters| voters.contains(&node))
    };
    let state = NodeState::Removed;
    sites
        .leaving()
        .filter(move |node| !placements.iter().any(|placement| votes(*node, placement)))
        .map(move |node| Command::SetNodeState(SetNodeState { node, state }))
}

/// How many groups are at home in each region.
struct Homes(BTreeMap<RegionName, usize>);

impl Homes {
    fn of(placements: &[Placement]) -> Self {
        let mut homes = BTreeMap::new();
        for placement in placements {
            *homes.entry(placement.home.clone()).or_default() += 1;
        }
        Homes(homes)
    }

    /// Where the group should be at home: where it is, unless that region has no nodes any more.
    /// A group that must not leave its region does not.
    fn home(&mut self, sites: &Sites, placement: &Placement) -> RegionName {
        let home = &placement.home;
        if placement.goal == SurvivalGoal::Zone || sites.regions().contains(home) {
            return home.clone();
        }
        let voters_in = |region: &RegionName| {
            let voters = placement.voters.iter();
            voters
                .filter(|node| sites.region(**node) == Some(region))
                .count()
        };
        let homes_in = |region: &RegionName| self.0.get(region).copied().unwrap_or_default();
        let rank = |region: &&RegionName| (usize::MAX - voters_in(region), homes_in(region));
        let Some(next) = sites.regions().iter().min_by_key(rank).cloned() else {
            return home.clone();
        };
        *self.0.entry(next.clone()).or_default() += 1;
        next
    }
}

#[cfg(test)]
mod tests;

//! Shards that a region wants and does not have yet.

use std::collections::BTreeSet;

use model::limits::SHARDS_MAX;
use model::{GroupId, ShardNumber, SurvivalGoal};

use super::sites::{Load, Sites};
use super::target::{self, Wish};
use crate::control::{Placement, Region};

/// Shards that one plan makes: each costs elections, and there is a next plan.
const MADE_AT_ONCE_MAX: usize = 16;

/// The placements of shards that are missing, numbered from `next` on. A region that has no node
/// to lead them gets none.
pub(super) fn missing(
    sites: &Sites,
    load: &mut Load,
    regions: &[Region],
    placements: &[Placement],
    next: ShardNumber,
) -> Vec<Placement> {
    let mut in_order: Vec<&Region> = regions.iter().collect();
    in_order.sort_by_key(|region| region.first_node);
    let goals = [SurvivalGoal::Region, SurvivalGoal::Zone];
    let wanted = in_order
        .into_iter()
        .filter(|region| sites.regions().contains(&region.name))
        .flat_map(|region| goals.map(|goal| (region, goal)))
        .flat_map(|(region, goal)| {
            let is_there = |placement: &&Placement| {
                matches!(placement.group, GroupId::Shard(_))
                    && (&placement.home, placement.goal) == (&region.name, goal)
            };
            let there = placements.iter().filter(is_there).count();
            let lacking = usize::from(region.shards(goal)).saturating_sub(there);
            std::iter::repeat_n((region, goal), lacking)
        });
    (next.0..=SHARDS_MAX)
        .zip(wanted.take(MADE_AT_ONCE_MAX))
        .map_while(|(number, (region, goal))| {
            let group = GroupId::Shard(ShardNumber(number));
            new(sites, load, group, region, goal)
        })
        .collect()
}

/// A group that is yet to be founded, by those who should vote in it; `None` when nobody can.
fn new(
    sites: &Sites,
    load: &mut Load,
    group: GroupId,
    region: &Region,
    goal: SurvivalGoal,
) -> Option<Placement> {
    let nobody = BTreeSet::new();
    let wish = Wish {
        group,
        home: &region.name,
        goal,
        voters: &nobody,
    };
    let voters = target::voters(sites, load, &wish);
    if voters.is_empty() {
        return None;
    }
    load.add(&voters);
    Some(Placement::new(group, region.name.clone(), goal, voters))
}

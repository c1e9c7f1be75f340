//! Who should vote in a group, given who does.

use std::collections::{BTreeMap, BTreeSet};

use model::{GroupId, NodeId, RegionName, SurvivalGoal};

use super::sites::{Load, Sites};
use crate::control::Placement;

/// Voters of a group that survives the loss of a zone.
const ZONE_VOTERS_MAX: usize = 3;
/// Voters of a group that survives the loss of a region.
const REGION_VOTERS_MAX: usize = 5;
/// With fewer regions, none can be lost.
const SPREAD_REGIONS_MIN: usize = 3;
/// A region that has more voters than this out of five can't be lost.
const VOTERS_PER_REGION_MAX: usize = 2;
const _: () = assert!(VOTERS_PER_REGION_MAX * 2 < REGION_VOTERS_MAX);

/// What is wanted of a group.
pub(super) struct Wish<'a> {
    pub(super) group: GroupId,
    pub(super) home: &'a RegionName,
    pub(super) goal: SurvivalGoal,
    /// Who votes now; nobody in a group that is yet to be founded.
    pub(super) voters: &'a BTreeSet<NodeId>,
}

/// How many voters each region should have.
type Shares<'a> = Vec<(&'a RegionName, usize)>;

impl<'a> Wish<'a> {
    pub(super) fn of(placement: &'a Placement, home: &'a RegionName) -> Self {
        Wish {
            group: placement.group,
            home,
            goal: placement.goal,
            voters: &placement.voters,
        }
    }

    /// Over how many regions voters are spread at most: what is asked on every node is spread
    /// widely, a shard stays near its publishers.
    fn regions_max(&self) -> usize {
        match self.group {
            GroupId::Control => REGION_VOTERS_MAX,
            GroupId::Registry(_) | GroupId::Shard(_) => SPREAD_REGIONS_MIN,
        }
    }

    fn voters_in(&self, sites: &Sites, region: &RegionName) -> usize {
        let here = |node: &&NodeId| sites.region(**node) == Some(region);
        self.voters.iter().filter(here).count()
    }

    /// Whether the loss of a region was survived by its voters at some time.
    fn is_spread(&self, sites: &Sites) -> bool {
        let regions: BTreeSet<_> = self
            .voters
            .iter()
            .filter_map(|node| sites.region(*node))
            .collect();
        regions.len() >= SPREAD_REGIONS_MIN
    }
}

/// Who should vote in the group. Who does and fits, stays. Their number is odd; those of one
/// region stand in as many zones as there are.
pub(super) fn voters(sites: &Sites, load: &Load, wish: &Wish<'_>) -> BTreeSet<NodeId> {
    let is_wide = sites.regions().len() >= SPREAD_REGIONS_MIN;
    let shares = match wish.goal {
        SurvivalGoal::Region if is_wide => match over_regions(sites, load, wish) {
            Some(shares) => shares,
            // So many regions are lost that there is no good answer: better none than one that
            // must be taken back.
            None if wish.is_spread(sites) => return wish.voters.clone(),
            None => at_home(sites, wish),
        },
        SurvivalGoal::Region | SurvivalGoal::Zone => at_home(sites, wish),
    };
    let voters: BTreeSet<NodeId> = shares
        .into_iter()
        .flat_map(|(region, count)| choose(sites, load, wish, region, count))
        .collect();
    match voters.is_empty() {
        // Nobody is left at home. The replicas stay where they are, for they must not leave.
        true => wish.voters.clone(),
        false => voters,
    }
}

/// All voters at home.
fn at_home<'a>(sites: &Sites, wish: &Wish<'a>) -> Shares<'a> {
    let candidates = sites.candidates(wish.home, wish.voters).len();
    let count = match candidates.min(ZONE_VOTERS_MAX) {
        // A second voter could only hold the first one up.
        2 => 1,
        count => count,
    };
    vec![(wish.home, count)]
}

/// Five voters, at most two in a region; or three, where regions have one node only. `None` when
/// fewer than three regions have anyone to vote.
fn over_regions<'a>(sites: &'a Sites, load: &Load, wish: &Wish<'_>) -> Option<Shares<'a>> {
    let candidates: BTreeMap<&RegionName, BTreeSet<NodeId>> = sites
        .regions()
        .iter()
        .map(|region| (region, sites.candidates(region, wish.voters)))
        .filter(|(_, candidates)| !candidates.is_empty())
        .collect();
    let mut ranked: Vec<_> = candidates.keys().copied().collect();
    ranked.sort_by_key(|region| rank(sites, load, wish, region, &candidates[region]));

    let has_two = |region: &RegionName| candidates[region].len() >= VOTERS_PER_REGION_MAX;
    let widest = ranked.len().min(wish.regions_max());
    (SPREAD_REGIONS_MIN..=widest)
        .rev()
        .find_map(|count| shares(&ranked[..count], has_two))
}

/// One voter for each of these regions, and a second one in the first that have two nodes, so that
/// there are five. `None` when that comes out even; but three regions always do, with one each.
fn shares<'a>(
    regions: &[&'a RegionName],
    has_two: impl Fn(&RegionName) -> bool,
) -> Option<Shares<'a>> {
    let seconds = REGION_VOTERS_MAX - regions.len();
    let two = regions.iter().filter(|region| has_two(region));
    let two: BTreeSet<_> = two.take(seconds).collect();
    let is_five = two.len() == seconds;
    if !is_five && regions.len() > SPREAD_REGIONS_MIN {
        return None;
    }
    let share = |region: &&'a RegionName| match is_five && two.contains(region) {
        true => (*region, VOTERS_PER_REGION_MAX),
        false => (*region, 1),
    };
    Some(regions.iter().map(share).collect())
}

/// Which regions come first: those where someone is well, then home, then those that have voters
/// already, then the idle ones.
fn rank(
    sites: &Sites,
    load: &Load,
    wish: &Wish<'_>,
    region: &RegionName,
    candidates: &BTreeSet<NodeId>,
) -> impl Ord + use<> {
    let is_lost = !candidates.iter().any(|node| sites.is_well(*node));
    let least = candidates.iter().map(|node| load.get(*node)).min();
    (
        is_lost,
        region != wish.home,
        usize::MAX - wish.voters_in(sites, region),
        least,
        region.clone(),
    )
}

/// So many voters of one region: lost ones only where there is no other, then one of each zone
/// before a second of any, then those who vote already, then the idle ones.
fn choose(
    sites: &Sites,
    load: &Load,
    wish: &Wish<'_>,
    region: &RegionName,
    count: usize,
) -> Vec<NodeId> {
    let mut candidates = sites.candidates(region, wish.voters);
    let mut chosen: Vec<NodeId> = Vec::new();
    while chosen.len() < count {
        let rank = |node: &&NodeId| {
            let zone = sites.zone(**node);
            let zone_mates = chosen.iter().filter(|other| sites.zone(**other) == zone);
            (
                !sites.is_well(**node),
                zone_mates.count(),
                !wish.voters.contains(node),
                load.get(**node),
                **node,
            )
        };
        let Some(next) = candidates.iter().min_by_key(rank).copied() else {
            break;
        };
        candidates.remove(&next);
        chosen.push(next);
    }
    chosen
}

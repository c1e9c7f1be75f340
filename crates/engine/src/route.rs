//! Which shard a message should go to that no pin binds yet.
//!
//! Publishes stay in the region where they arrive, unless their topic's messages may not be stored
//! there. A keyed message goes where the hash of its key says; the registry then binds the key to
//! that shard, and this is not asked again.
//!
//! - `place`: where operators may pin keys instead.

mod place;

use std::collections::{BTreeMap, BTreeSet};

use model::{GroupId, KeyHash, RegionName, ShardNumber, SurvivalGoal, TopicName};
use thiserror::Error;

use crate::Fault;
use crate::control::{Placement, Topic, read};
use crate::kv::View;

pub use place::{Misplaced, Places, Wanted};

/// The shards of the cluster by region and class. To be made again when placements change.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Routes {
    regions: BTreeSet<RegionName>,
    shards: BTreeMap<(RegionName, SurvivalGoal), Vec<ShardNumber>>,
    /// Where each shard is at home, and its class; also of those that are still to be founded.
    places: BTreeMap<ShardNumber, (RegionName, SurvivalGoal)>,
}

/// How messages that could go to several shards are spread over them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spread {
    /// By key: the same shard for each message of the key, as long as there are no more shards.
    /// With one more, it takes an equal part of the keys from each.
    Key(KeyHash),
    /// By turns: whoever publishes counts.
    Turn(u64),
}

/// Where a message goes that no pin binds yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Route {
    /// The shard.
    pub shard: ShardNumber,
    /// Where it is at home.
    pub home: RegionName,
    /// Whether it goes down with its region, and a shard elsewhere could take the message then.
    pub is_replaceable: bool,
}

/// *Retry*: there is no shard yet that may take messages of the topic.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("No shard can take messages of topic {topic} yet. Please try again.")]
pub struct NoRoute {
    topic: TopicName,
}

/// *Refused*: messages of the topic must not even pass through the region.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "The message_storage_policy of topic {topic} is enforced in transit, and does not allow region \
     {region}. Use an endpoint in an allowed region: {allowed}."
)]
pub struct NotInTransit {
    topic: TopicName,
    region: RegionName,
    allowed: String,
}

impl Routes {
    /// The shards that there are.
    ///
    /// # Errors
    /// [`Fault`] when the state can't be read.
    pub fn read(view: &dyn View) -> Result<Self, Fault> {
        let regions = read::present_regions(view)?;
        Ok(Routes::new(regions, &read::placements(view)?))
    }

    /// The shards with these placements, in a cluster that has nodes in these regions. While a
    /// region has shards that exist, those that are still to be founded get nothing.
    #[must_use]
    pub fn new(regions: BTreeSet<RegionName>, placements: &[Placement]) -> Self {
        let mut shards: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for founded in [true, false] {
            let mut found: BTreeMap<_, Vec<_>> = BTreeMap::new();
            for placement in placements.iter().filter(|it| it.founded == founded) {
                if let GroupId::Shard(number) = placement.group {
                    let class = (placement.home.clone(), placement.goal);
                    found.entry(class).or_default().push(number);
                }
            }
            for (class, numbers) in found {
                shards.entry(class).or_insert(numbers);
            }
        }
        let places = placements.iter().filter_map(|it| match it.group {
            GroupId::Shard(number) => Some((number, (it.home.clone(), it.goal))),
            GroupId::Control | GroupId::Registry(_) => None,
        });
        Routes {
            regions,
            shards,
            places: places.collect(),
        }
    }

    /// The regions in which the cluster has nodes.
    pub fn regions(&self) -> impl Iterator<Item = &RegionName> {
        self.regions.iter()
    }

    /// Whether a shard is known.
    #[must_use]
    pub fn has(&self, shard: ShardNumber) -> bool {
        self.places.contains_key(&shard)
    }

    /// The shards of one class that are at home in a region, by number.
    #[must_use]
    pub fn shards(&self, home: &RegionName, class: SurvivalGoal) -> &[ShardNumber] {
        let found = self.shards.get(&(home.clone(), class));
        found.map_or(&[], Vec::as_slice)
    }
}

/// Whether messages of the topic may be stored in a shard, wherever they were before: its policy
/// allows the shard's region, and the shard survives what the topic is to and no more. Not in one
/// that is not known yet.
#[must_use]
pub fn fits(routes: &Routes, topic: &Topic, shard: ShardNumber) -> bool {
    let policy = topic.storage_policy.as_ref();
    routes.places.get(&shard).is_some_and(|(home, class)| {
        *class == topic.class(&routes.regions)
            && policy.is_none_or(|policy| policy.allowed.contains(home))
    })
}

/// The shard for a message of the topic: of those at home in the first of the `near` regions that
/// the topic's storage policy allows. `near` begins with the region of the publisher; regions that
/// it lacks come last, by name.
///
/// # Errors
/// [`NoRoute`]
pub fn route(
    routes: &Routes,
    near: &[RegionName],
    topic: &Topic,
    spread: Spread,
) -> Result<Route, NoRoute> {
    let class = topic.class(&routes.regions);
    let policy = topic.storage_policy.as_ref();
    let far = routes
        .regions
        .iter()
        .filter(|region| !near.contains(region));
    let mut found = near
        .iter()
        .chain(far)
        .filter(|region| policy.is_none_or(|policy| policy.allowed.contains(region)))
        .map(|region| (routes.shards(region, class), region))
        .filter(|(shards, _)| !shards.is_empty());
    let Some((shards, home)) = found.next() else {
        return Err(NoRoute {
            topic: topic.name.clone(),
        });
    };
    Ok(Route {
        shard: shards[spread.over(shards.len())],
        home: home.clone(),
        is_replaceable: class == SurvivalGoal::Zone && found.next().is_some(),
    })
}

/// Whether a message of the topic may be published, or pulled by a subscriber, in a region.
///
/// # Errors
/// [`NotInTransit`] when the topic's storage policy forbids it.
pub fn admit(topic: &Topic, region: &RegionName) -> Result<(), NotInTransit> {
    match &topic.storage_policy {
        Some(policy) if policy.enforce_in_transit && !policy.allowed.contains(region) => {
            Err(NotInTransit {
                topic: topic.name.clone(),
                region: region.clone(),
                allowed: policy.names(),
            })
        }
        _ => Ok(()),
    }
}

impl Spread {
    /// A place among so many.
    fn over(self, count: usize) -> usize {
        match self {
            Spread::Key(KeyHash(bytes)) => {
                let hash = u128::from_be_bytes(bytes);
                jump((hash >> 64) as u64 ^ hash as u64, count)
            }
            Spread::Turn(turn) => (turn % count as u64) as usize,
        }
    }
}

/// Jump consistent hash (Lamping and Veach, 2014), in whole numbers: from `n` places to `n + 1`,
/// one key in `n + 1` changes its place, to the new one.
fn jump(mut key: u64, count: usize) -> usize {
    let (mut place, mut next) = (0, 0);
    while next < count as u64 {
        place = next;
        key = key.wrapping_mul(2_862_933_555_777_941_757).wrapping_add(1);
        next = ((place + 1) << 31) / ((key >> 33) + 1);
    }
    place as usize
}

#[cfg(test)]
mod tests;

//! Where a key of a topic may be pinned by an operator: nowhere that its messages would not go to
//! by themselves.

use model::{GroupId, RegionName, ShardNumber, SurvivalGoal, TopicName};
use thiserror::Error;

use super::{Routes, Spread};
use crate::control::{Placement, Topic};

/// Where an operator wants keys to live.
#[derive(Clone, Copy, Debug)]
pub enum Wanted<'a> {
    /// In a shard.
    Shard(&'a Placement),
    /// In a region: any of its shards that fits the topic.
    Region(&'a RegionName),
}

/// Shards over which keys are spread; at least one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Places(Vec<ShardNumber>);

/// *Refused*: keys of the topic may not live there.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Misplaced {
    /// The topic's storage policy forbids it.
    #[error(
        "the message_storage_policy of topic \"{topic}\" does not allow region \"{region}\": its \
         keys may live in {allowed}"
    )]
    NotAllowed {
        /// The topic.
        topic: TopicName,
        /// Where a key would have been stored.
        region: RegionName,
        /// The regions that are allowed.
        allowed: String,
    },
    /// The shard would survive less than the topic is to, or would keep copies outside of its
    /// region.
    #[error(
        "{shard} is of survival goal \"{has}\", and topic \"{topic}\" is kept by shards of goal \
         \"{wants}\": \"orderly shards describe\" says which goal a shard has"
    )]
    WrongClass {
        /// The shard.
        shard: GroupId,
        /// Its class.
        has: SurvivalGoal,
        /// The topic.
        topic: TopicName,
        /// The class of the topic.
        wants: SurvivalGoal,
    },
    /// The region has no shard of the topic's class.
    #[error(
        "region \"{region}\" has no shard of survival goal \"{wants}\", as topic \"{topic}\" needs: \
         \"orderly shards add --region {region} --survival {wants}\" makes one"
    )]
    NoShard {
        /// The region.
        region: RegionName,
        /// The topic.
        topic: TopicName,
        /// Its class.
        wants: SurvivalGoal,
    },
    /// *Retry*: nobody leads the shard yet.
    #[error("{shard} is new and has no leader yet: try again in a moment")]
    NotFounded {
        /// The shard.
        shard: GroupId,
    },
}

impl Places {
    /// The shards in which keys of the topic may live there.
    ///
    /// # Errors
    /// [`Misplaced`]
    pub fn of(routes: &Routes, topic: &Topic, wanted: Wanted<'_>) -> Result<Self, Misplaced> {
        let wants = topic.class(&routes.regions);
        let home = match wanted {
            Wanted::Shard(placement) => &placement.home,
            Wanted::Region(region) => region,
        };
        check_policy(topic, home)?;
        match wanted {
            Wanted::Shard(placement) => of_shard(topic, wants, placement),
            Wanted::Region(region) => match routes.shards(region, wants) {
                [] => Err(Misplaced::NoShard {
                    region: region.clone(),
                    topic: topic.name.clone(),
                    wants,
                }),
                shards => Ok(Places(shards.to_vec())),
            },
        }
    }

    /// Whether a shard is among them.
    #[must_use]
    pub fn has(&self, shard: ShardNumber) -> bool {
        self.0.contains(&shard)
    }

    /// The one for a key.
    #[must_use]
    pub fn choose(&self, spread: Spread) -> ShardNumber {
        self.0[spread.over(self.0.len())]
    }
}

fn check_policy(topic: &Topic, region: &RegionName) -> Result<(), Misplaced> {
    match &topic.storage_policy {
        Some(policy) if !policy.allowed.contains(region) => Err(Misplaced::NotAllowed {
            topic: topic.name.clone(),
            region: region.clone(),
            allowed: policy.names(),
        }),
        _ => Ok(()),
    }
}

fn of_shard(
    topic: &Topic,
    wants: SurvivalGoal,
    placement: &Placement,
) -> Result<Places, Misplaced> {
    let shard = placement.group;
    let GroupId::Shard(number) = shard else {
        unreachable!("{shard} has no messages");
    };
    if placement.goal != wants {
        return Err(Misplaced::WrongClass {
            shard,
            has: placement.goal,
            topic: topic.name.clone(),
            wants,
        });
    }
    match placement.founded {
        true => Ok(Places(vec![number])),
        false => Err(Misplaced::NotFounded { shard }),
    }
}

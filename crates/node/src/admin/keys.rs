//! Ordering keys: which shard has their messages.
//!
//! Registry groups know keys by a hash only, so that a key can be looked for by its name, and is
//! listed by its hash.
//!
//! - `place`: where keys may go.
//! - `moves`: keys are pinned, and moved, there.

mod moves;
mod place;

use std::collections::BTreeMap;

use engine::control::read;
use engine::registry::{Pin, Registries};
use engine::table::strand::StrandKey;
use model::{GroupId, Incarnation, KeyHash, RegionName, RegistryNumber, ShardNumber, TopicName};
use proto::admin;
use replica::{ControlClient, RegistryClient, Unavailable};

use super::known;
use super::refusal::Refusal;

pub(super) use moves::{KeyMoves, move_all, pin};

/// Keys of a page.
const PAGE_KEYS_MAX: usize = 1_000;
/// Looks at registry groups for one page: where few keys are wanted of many, a page has few keys.
const PAGE_LOOKS_MAX: usize = 8;

/// Where a key is.
pub(super) async fn locate(
    control: &ControlClient,
    registry: &RegistryClient,
    request: &admin::LocateKeyRequest,
) -> Result<admin::LocateKeyResponse, Refusal> {
    let catalogue = Catalogue::read(control).await?;
    let topic = catalogue.topic(control, &request.topic)?;
    let cluster = read::cluster(control.view())?.ok_or(Refusal::Unavailable(UNKNOWN_CLUSTER))?;
    let key = place::key(&cluster, topic, &request.ordering_key)?;
    let registries = Registries::new(cluster.registries);
    let pins = registry.look(registries.of(key.strand), key, 1).await?;
    let Some((_, pin)) = pins.into_iter().find(|(found, _)| *found == key) else {
        return Ok(admin::LocateKeyResponse::default());
    };
    let survey = control.survey().await?;
    let led = survey.groups.get(&GroupId::Shard(pin.shard));
    let leader = match led {
        Some(led) => read::node(control.view(), led.leader)?,
        None => None,
    };
    Ok(admin::LocateKeyResponse {
        key: Some(catalogue.message(&key, &pin)),
        leader: leader.map(|node| node.name.to_string()).unwrap_or_default(),
    })
}

/// A page of the keys.
pub(super) async fn list(
    control: &ControlClient,
    registry: &RegistryClient,
    request: &admin::ListKeysRequest,
) -> Result<admin::ListKeysResponse, Refusal> {
    let catalogue = Catalogue::read(control).await?;
    let wanted = Wanted::of(&catalogue, control, request)?;
    let cluster = read::cluster(control.view())?.ok_or(Refusal::Unavailable(UNKNOWN_CLUSTER))?;
    let size = match request.page_size as usize {
        0 => PAGE_KEYS_MAX,
        size => size.min(PAGE_KEYS_MAX),
    };
    let mut place = match request.page_token.as_str() {
        "" => Some(wanted.first(RegistryNumber(1))),
        token => Some(Place::parse(token).ok_or_else(invalid_token)?),
    };
    let mut keys = Vec::new();
    for _ in 0..PAGE_LOOKS_MAX {
        let Some(Place { registry: at, from }) = place else {
            break;
        };
        if keys.len() >= size {
            break;
        }
        let count = size - keys.len();
        let pins = registry.look(at, from, count).await?;
        let last = pins.last().map(|(key, _)| *key);
        let is_end = pins.len() < count || last.is_some_and(|key| wanted.is_past(&key));
        let found = pins
            .iter()
            .filter(|(key, pin)| wanted.has(&catalogue, key, pin));
        keys.extend(found.map(|(key, pin)| catalogue.message(key, pin)));
        place = match last.filter(|_| !is_end).and_then(next) {
            Some(from) => Some(Place { registry: at, from }),
            None if at.0 < cluster.registries => Some(wanted.first(RegistryNumber(at.0 + 1))),
            None => None,
        };
    }
    Ok(admin::ListKeysResponse {
        keys,
        next_page_token: place.map(|place| place.token()).unwrap_or_default(),
    })
}

/// A node knows its cluster before it serves operators; until then nothing was done.
const UNKNOWN_CLUSTER: Unavailable = Unavailable { unknown: false };

/// What keys are listed with.
struct Catalogue {
    topics: BTreeMap<Incarnation, TopicName>,
    homes: BTreeMap<ShardNumber, RegionName>,
}

impl Catalogue {
    async fn read(control: &ControlClient) -> Result<Self, Refusal> {
        let view = control.read().await?;
        let topics = read::all_topics(view).map(|topic| {
            let topic = topic?;
            Ok((topic.incarnation, topic.name))
        });
        let topics = topics.collect::<Result<_, engine::Fault>>()?;
        let placements = read::placements(view)?.into_iter();
        let homes = placements.filter_map(|placement| match placement.group {
            GroupId::Shard(shard) => Some((shard, placement.home)),
            GroupId::Control | GroupId::Registry(_) => None,
        });
        Ok(Catalogue {
            topics,
            homes: homes.collect(),
        })
    }

    fn topic(&self, control: &ControlClient, name: &str) -> Result<Incarnation, Refusal> {
        let parsed = TopicName::parse(name).map_err(|why| Refusal::Invalid(why.to_string()))?;
        let found = read::topic(control.view(), &parsed)?;
        let not_found = || Refusal::NoSuchTopic(name.to_owned());
        Ok(found.ok_or_else(not_found)?.incarnation)
    }

    fn message(&self, key: &StrandKey, pin: &Pin) -> admin::Key {
        let topic = self.topics.get(&key.topic);
        let home = self.homes.get(&pin.shard);
        admin::Key {
            topic: topic.map(TopicName::to_string).unwrap_or_default(),
            hash: hex(key.strand),
            shard: GroupId::Shard(pin.shard).to_string(),
            region: home.map(RegionName::to_string).unwrap_or_default(),
            epoch: pin.epoch.0,
        }
    }
}

/// Which keys are asked for.
struct Wanted {
    topic: Option<Incarnation>,
    shard: Option<GroupId>,
    region: Option<RegionName>,
}

impl Wanted {
    fn of(
        catalogue: &Catalogue,
        control: &ControlClient,
        request: &admin::ListKeysRequest,
    ) -> Result<Self, Refusal> {
        let topic = match request.topic.as_str() {
            "" => None,
            name => Some(catalogue.topic(control, name)?),
        };
        let shard = match request.shard.as_str() {
            "" => None,
            name => Some(known::shard(control.view(), name)?.group),
        };
        let region = match request.region.as_str() {
            "" => None,
            name => Some(known::region(control.view(), name)?.name),
        };
        Ok(Wanted {
            topic,
            shard,
            region,
        })
    }

    /// Where the list begins in a registry group.
    fn first(&self, registry: RegistryNumber) -> Place {
        let from = StrandKey {
            topic: self.topic.unwrap_or(Incarnation(0)),
            strand: KeyHash([0; 16]),
        };
        Place { registry, from }
    }

    /// Whether no later key of a registry group is wanted.
    fn is_past(&self, key: &StrandKey) -> bool {
        self.topic.is_some_and(|topic| key.topic > topic)
    }

    fn has(&self, catalogue: &Catalogue, key: &StrandKey, pin: &Pin) -> bool {
        let home = || catalogue.homes.get(&pin.shard);
        let region = self.region.as_ref();
        self.topic.is_none_or(|topic| key.topic == topic)
            && self
                .shard
                .is_none_or(|shard| shard == GroupId::Shard(pin.shard))
            && region.is_none_or(|region| home() == Some(region))
    }
}

/// Where a page begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Place {
    registry: RegistryNumber,
    from: StrandKey,
}

impl Place {
    fn token(self) -> String {
        let Place { registry, from } = self;
        format!("{}.{:x}.{}", registry.0, from.topic.0, hex(from.strand))
    }

    fn parse(token: &str) -> Option<Self> {
        let mut parts = token.split('.');
        let registry = RegistryNumber(parts.next()?.parse().ok()?);
        let topic = Incarnation(u64::from_str_radix(parts.next()?, 16).ok()?);
        let strand = u128::from_str_radix(parts.next()?, 16).ok()?;
        let strand = KeyHash(strand.to_be_bytes());
        let from = StrandKey { topic, strand };
        (parts.next().is_none() && registry.0 > 0).then_some(Place { registry, from })
    }
}

/// The first key after this one; `None` after the last of all.
fn next(key: StrandKey) -> Option<StrandKey> {
    let strand = u128::from_be_bytes(key.strand.0).checked_add(1);
    match strand {
        Some(strand) => Some(StrandKey {
            strand: KeyHash(strand.to_be_bytes()),
            ..key
        }),
        None => Some(StrandKey {
            topic: Incarnation(key.topic.0.checked_add(1)?),
            strand: KeyHash([0; 16]),
        }),
    }
}

fn hex(strand: KeyHash) -> String {
    format!("{:032x}", u128::from_be_bytes(strand.0))
}

fn invalid_token() -> Refusal {
    Refusal::Invalid("the page token is none that was given out".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_goes_on_where_the_one_before_ended() {
        let at = |topic, strand: u128| StrandKey {
            topic: Incarnation(topic),
            strand: KeyHash(strand.to_be_bytes()),
        };
        assert_eq!(next(at(3, 7)), Some(at(3, 8)));
        assert_eq!(next(at(3, u128::MAX)), Some(at(4, 0)));
        let place = Place {
            registry: RegistryNumber(2),
            from: at(300, u128::MAX - 1),
        };
        assert_eq!(Place::parse(&place.token()), Some(place));
        for odd in ["", "1", "0.1.1", "1.1.1.1", "x.1.1"] {
            assert_eq!(Place::parse(odd), None, "{odd}");
        }
    }
}

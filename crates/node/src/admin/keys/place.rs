//! Where the keys of a topic are asked to be, as far as the topic may be there.

use engine::control::{Cluster, Topic, read};
use engine::route::{Places, Routes, Wanted};
use engine::table::strand::StrandKey;
use model::limits::ORDERING_KEY_BYTES_MAX;
use model::{Incarnation, KeyHash, TopicName};
use proto::admin::KeyPlace;
use replica::ControlClient;

use super::{Catalogue, UNKNOWN_CLUSTER};
use crate::admin::known;
use crate::admin::refusal::Refusal;

/// A topic, and where its keys are to be.
pub(super) struct Destination {
    pub(super) catalogue: Catalogue,
    pub(super) places: Places,
    topic: Topic,
    cluster: Cluster,
}

impl Destination {
    pub(super) async fn read(
        control: &ControlClient,
        topic: &str,
        place: Option<&KeyPlace>,
    ) -> Result<Self, Refusal> {
        let catalogue = Catalogue::read(control).await?;
        let name = TopicName::parse(topic).map_err(|why| Refusal::Invalid(why.to_string()))?;
        let found = read::topic(control.view(), &name)?;
        let topic = found.ok_or_else(|| Refusal::NoSuchTopic(topic.to_owned()))?;
        let cluster =
            read::cluster(control.view())?.ok_or(Refusal::Unavailable(UNKNOWN_CLUSTER))?;
        Ok(Destination {
            places: places(control, &topic, place)?,
            catalogue,
            topic,
            cluster,
        })
    }

    /// A key by its name.
    pub(super) fn key(&self, name: &str) -> Result<StrandKey, Refusal> {
        key(&self.cluster, self.topic.incarnation, name)
    }

    /// A key by its hash.
    pub(super) fn key_of_hash(&self, hash: &str) -> Result<StrandKey, Refusal> {
        let strand = u128::from_str_radix(hash, 16);
        let strand = strand.map_err(|_| {
            Refusal::Invalid(format!(
                "\"{hash}\" is no hash of a key: \"orderly keys list\" has them"
            ))
        })?;
        Ok(StrandKey {
            topic: self.topic.incarnation,
            strand: KeyHash(strand.to_be_bytes()),
        })
    }
}

/// A key of a topic by its name.
pub(super) fn key(cluster: &Cluster, topic: Incarnation, name: &str) -> Result<StrandKey, Refusal> {
    match name.len() {
        0 => Err(Refusal::Invalid(
            "a message without an ordering key has no place: a key is not empty".into(),
        )),
        1..=ORDERING_KEY_BYTES_MAX => Ok(StrandKey {
            topic,
            strand: cluster.secret.key_hash(topic, name),
        }),
        bytes => Err(Refusal::Invalid(format!(
            "an ordering key has {ORDERING_KEY_BYTES_MAX} bytes at most, not {bytes}"
        ))),
    }
}

fn places(
    control: &ControlClient,
    topic: &Topic,
    place: Option<&KeyPlace>,
) -> Result<Places, Refusal> {
    let view = control.view();
    let routes = Routes::read(view)?;
    let (shard, region) = place.map_or(("", ""), |place| (&place.shard, &place.region));
    let places = match (shard, region) {
        (shard, "") if !shard.is_empty() => {
            let placement = known::shard(view, shard)?;
            Places::of(&routes, topic, Wanted::Shard(&placement))
        }
        ("", region) if !region.is_empty() => {
            let region = known::region(view, region)?;
            Places::of(&routes, topic, Wanted::Region(&region.name))
        }
        _ => {
            return Err(Refusal::Invalid(
                "say where the keys are to be: a shard, or a region".into(),
            ));
        }
    };
    Ok(places?)
}

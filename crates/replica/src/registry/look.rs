//! A look at the pins of a registry group: nothing is logged.

use std::time::Duration;

use engine::registry::{self, Pin};
use engine::table::strand::StrandKey;
use model::limits::REGISTRY_KEYS_MAX;
use model::{GroupId, Incarnation, KeyHash, NodeId, RegistryNumber};
use proto::cluster::registry_client::RegistryClient as Remote;
use proto::cluster::{RegistryLookReply, RegistryLookRequest};
use tokio::time::{Instant, sleep, timeout};

use super::{ANSWER_MAX, RegistryClient};
use crate::Unavailable;
use crate::peer::Use;
use crate::raft::Core;

/// Pins, in the order of their keys.
pub type Pins = Vec<(StrandKey, Pin)>;

/// How long a group is looked for that has no leader at the moment.
const LOOK_MAX: Duration = Duration::from_secs(5);
/// The pause before it is looked for again.
const LOOK_AGAIN_AFTER: Duration = Duration::from_millis(100);

/// The format of pins on their way to another node.
const FORMAT: u8 = 1;

impl RegistryClient {
    /// The first pins of a group from a key on, [`REGISTRY_KEYS_MAX`] at most, and none that is
    /// older than the call.
    ///
    /// # Errors
    /// [`Unavailable`] when the group has no leader that answers.
    pub async fn look(
        &self,
        registry: RegistryNumber,
        from: StrandKey,
        count: usize,
    ) -> Result<Pins, Unavailable> {
        let give_up = Instant::now() + LOOK_MAX;
        loop {
            match self.look_once(registry, from, count).await {
                Some(pins) => return Ok(pins),
                None if Instant::now() >= give_up => return Err(Unavailable::NOT_DONE),
                None => sleep(LOOK_AGAIN_AFTER).await,
            }
        }
    }

    async fn look_once(
        &self,
        registry: RegistryNumber,
        from: StrandKey,
        count: usize,
    ) -> Option<Pins> {
        let group = GroupId::Registry(registry);
        let count = count.min(REGISTRY_KEYS_MAX);
        if let Some(core) = self.groups.get(group)
            && core.leader() == Some(self.groups.node())
        {
            return pins(&core, from, count).await;
        }
        for node in self.who_may_lead(group) {
            let asked = timeout(ANSWER_MAX, self.look_at(node, registry, from, count));
            if let Ok(Some(pins)) = asked.await {
                self.answered.learn(group, node);
                return Some(pins);
            }
            self.answered.forget(group, node);
        }
        None
    }

    async fn look_at(
        &self,
        node: NodeId,
        registry: RegistryNumber,
        from: StrandKey,
        count: usize,
    ) -> Option<Pins> {
        let channel = self.peers.channel(node, Use::Calls).ok()?;
        let request = RegistryLookRequest {
            registry: u32::from(registry.0),
            topic: from.topic.0,
            strand: from.strand.0.to_vec().into(),
            count: u32::try_from(count).ok()?,
        };
        let answer = Remote::new(channel).look(request).await.ok()?;
        decode(&answer.into_inner().pins)
    }
}

/// What a look at a group asks for; `None` when it makes no sense.
pub(super) fn asked(request: &RegistryLookRequest) -> Option<(StrandKey, usize)> {
    let from = StrandKey {
        topic: Incarnation(request.topic),
        strand: KeyHash(request.strand[..].try_into().ok()?),
    };
    Some((from, request.count as usize))
}

/// What the leader of a group answers a look at it; `None` when it is not certain that it leads.
pub(super) async fn answer(
    core: &Core,
    from: StrandKey,
    count: usize,
) -> Option<RegistryLookReply> {
    let pins = pins(core, from, count.min(REGISTRY_KEYS_MAX)).await?;
    let pins = postcard::to_extend(&pins, vec![FORMAT]).expect("plain data always encodes");
    Some(RegistryLookReply { pins: pins.into() })
}

async fn pins(core: &Core, from: StrandKey, count: usize) -> Option<Pins> {
    core.read().await.ok()?;
    let pins = registry::read::pins(core.view(), from).take(count);
    pins.collect::<Result<_, _>>().ok()
}

fn decode(bytes: &[u8]) -> Option<Pins> {
    let (_, rest) = bytes
        .split_first()
        .filter(|(format, _)| **format == FORMAT)?;
    match postcard::take_from_bytes(rest).ok()? {
        (pins, []) => Some(pins),
        _ => None,
    }
}

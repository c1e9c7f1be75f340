//! The way to the registry groups, which know the owner of each key.
//!
//! - [`answered`]: who leads them, as far as anybody has answered.
//! - [`service`]: how other nodes ask the groups that this one leads.
//! - [`look`]: a look at the pins.
//! - [`sweep`]: pins of which nothing is stored go.

mod answered;
mod look;
mod service;
pub(crate) mod sweep;

pub use look::Pins;

use std::time::Duration;

use engine::command::{Command, Outcome, Proposal};
use engine::control;
use engine::registry::{self, Claim, Pin, Registries, Reply};
use engine::table::strand::StrandKey;
use futures::FutureExt;
use model::{GroupId, NodeId, RegistryNumber, ShardNumber};
use proto::cluster::RegistryRequest;
use proto::cluster::registry_client::RegistryClient as Remote;
use proto::cluster::registry_server::RegistryServer;
use tokio::time::timeout;

use self::answered::Answered;
use self::service::RegistryService;
use crate::clock::Clock;
use crate::groups::Groups;
use crate::peer::{Peers, Use};
use crate::raft::Core;

/// How long another node may take before the next one is asked.
const ANSWER_MAX: Duration = Duration::from_secs(2);

/// The registry groups, as shards ask them. Cheap to clone.
#[derive(Clone)]
pub struct RegistryClient {
    groups: Groups,
    /// The control group, which knows where the registry groups are.
    control: Core,
    peers: Peers,
    clock: Clock,
    answered: Answered,
}

impl RegistryClient {
    /// A client of the registry groups here and at these peers.
    pub(crate) fn new(groups: Groups, control: Core, peers: Peers, clock: Clock) -> Self {
        RegistryClient {
            groups,
            control,
            peers,
            clock,
            answered: Answered::default(),
        }
    }

    /// What other nodes may ask of the groups that this one leads.
    pub(crate) fn service(&self) -> RegistryServer<RegistryService> {
        RegistryService::server(self.groups.clone(), self.clock)
    }

    /// Has a group carry out a command. `None` when nobody knows whether it did, or when it did
    /// not.
    pub(crate) fn ask(
        &self,
        registry: RegistryNumber,
        command: registry::Command,
    ) -> impl Future<Output = Option<Reply>> + Send + use<> {
        let client = self.clone();
        let entry = Proposal {
            at: self.clock.wall(),
            commands: vec![Command::Registry(command)],
        };
        async move { client.answer(registry, entry).await }
    }

    /// Where a key is pinned now. `None` when the group does not answer.
    pub(crate) async fn pin(&self, key: StrandKey) -> Option<Option<Pin>> {
        // In a box: a publish that waits for a move would else be deeper than compilers go.
        let found = self.look(self.group_of(&key)?, key, 1).boxed().await.ok()?;
        let of_key = found.into_iter().find(|(other, _)| *other == key);
        Some(of_key.map(|(_, pin)| pin))
    }

    /// Pins a key to a shard, if it is not pinned yet; where it is pinned then.
    pub(crate) async fn claim(&self, key: StrandKey, shard: ShardNumber) -> Option<Pin> {
        let strands = vec![key];
        let claim = registry::Command::Claim(Claim { shard, strands });
        let reply = self.ask(self.group_of(&key)?, claim).await?;
        reply.pins.first().copied().flatten()
    }

    fn group_of(&self, key: &StrandKey) -> Option<RegistryNumber> {
        let cluster = control::read::cluster(self.control.view()).ok()??;
        Some(Registries::new(cluster.registries).of(key.strand))
    }

    /// Waits until this node's catalogue is as new as any node's was when this was called. Whether
    /// it is.
    pub(crate) fn catalogue_is_current(&self) -> impl Future<Output = bool> + Send + use<> {
        let control = self.control.clone();
        async move { control.read().await.is_ok() }
    }

    async fn answer(&self, registry: RegistryNumber, entry: Proposal) -> Option<Reply> {
        let group = GroupId::Registry(registry);
        let bytes = entry.encode();
        if let Some(core) = self.groups.get(group)
            && core.leader() == Some(self.groups.node())
            && let Some(reply) = propose(&core, entry).await
        {
            return Some(reply);
        }
        // Where this node has handed the group over meanwhile, another one leads it.
        for node in self.who_may_lead(group) {
            // Whoever does not lead the group refuses. One that does not answer may have carried
            // the command out, and that does no harm.
            let asked = timeout(ANSWER_MAX, self.ask_node(node, registry, bytes.clone()));
            if let Ok(Some(reply)) = asked.await {
                self.answered.learn(group, node);
                return Some(reply);
            }
            self.answered.forget(group, node);
        }
        None
    }

    /// Other nodes that may lead a group, the likely ones first.
    fn who_may_lead(&self, group: GroupId) -> Vec<NodeId> {
        let leader = self.groups.get(group).and_then(|core| core.leader());
        let placement = control::read::placement(self.control.view(), group);
        // A catalogue that can't be read stops the node elsewhere.
        let placement = placement.ok().flatten();
        let voters = placement.into_iter().flat_map(|it| it.voters);
        let known = leader.into_iter().chain(self.answered.of(group));
        let mut nodes = Vec::new();
        for node in known.chain(voters) {
            if node != self.groups.node() && !nodes.contains(&node) {
                nodes.push(node);
            }
        }
        nodes
    }

    async fn ask_node(
        &self,
        node: NodeId,
        registry: RegistryNumber,
        entry: Vec<u8>,
    ) -> Option<Reply> {
        let channel = self.peers.channel(node, Use::Calls).ok()?;
        let request = RegistryRequest {
            registry: u32::from(registry.0),
            entry: entry.into(),
        };
        let answer = Remote::new(channel).ask(request).await.ok()?;
        Reply::decode(&answer.into_inner().reply)
    }
}

/// Has a group carry out the one command of an entry, if this node leads it. While it is being
/// handed over that waits, for a leader who can say what became of it.
async fn propose(core: &Core, entry: Proposal) -> Option<Reply> {
    let _work = core.rest().works().await;
    let committed = core.propose(None, entry).await.await.ok()?;
    match committed.outcomes.into_iter().next() {
        Some(Outcome::Registry(reply)) => Some(reply),
        other => unreachable!("{other:?} is no answer of a registry group"),
    }
}

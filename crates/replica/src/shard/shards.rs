//! All shards of the catalogue, wherever they are led.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use engine::dispatch::MoveReply;
use engine::registry::Pin;
use engine::table::strand::StrandKey;
use model::limits::LINK_FRAME_BYTES_MAX;
use model::{Boot, NodeId, ShardNumber};
use proto::cluster::forward_server::ForwardServer;
use tokio::sync::watch;
use tokio::time::Instant;

use super::client::ShardClient;
use super::link::{Callee, Links};
use super::local::LocalShard;
use super::way::Way;
use crate::Unavailable;
use crate::registry::RegistryClient;

/// Handles by shard.
pub type ShardClients = Arc<BTreeMap<ShardNumber, ShardClient>>;

/// The present life of each node, as the control group has committed it.
pub(super) type Lives = BTreeMap<NodeId, Boot>;

/// The shards that a node knows of. Clones are the same.
#[derive(Clone)]
pub struct Shards {
    links: Links,
    clients: watch::Sender<ShardClients>,
    /// The nodes whose clients the shards may serve.
    lives: watch::Sender<Lives>,
    /// Who knows where keys are pinned.
    registry: Arc<OnceLock<RegistryClient>>,
}

impl Shards {
    /// No shard is known yet.
    #[must_use]
    pub fn new(links: Links) -> Self {
        Shards {
            links,
            clients: watch::Sender::new(ShardClients::default()),
            lives: watch::Sender::new(Lives::new()),
            registry: Arc::default(),
        }
    }

    /// Nodes are in these lives now: their sessions of earlier ones have ended.
    pub(crate) fn woken(&self, lives: Lives) {
        self.lives.send_if_modified(|known| {
            let changed = *known != lives;
            *known = lives;
            changed
        });
    }

    /// The present life of each node, as it changes.
    pub(super) fn lives(&self) -> watch::Receiver<Lives> {
        self.lives.subscribe()
    }

    /// From now on pins can be asked for.
    pub(crate) fn know(&self, registry: RegistryClient) {
        let _ = self.registry.set(registry);
    }

    /// Where a key is pinned, if it is, as its registry group says now.
    ///
    /// # Errors
    /// [`Unavailable`] when the group does not answer.
    pub async fn pin(&self, key: StrandKey) -> Result<Option<Pin>, Unavailable> {
        let registry = self.registry.get().ok_or(Unavailable::NOT_DONE)?;
        registry.pin(key).await.ok_or(Unavailable::NOT_DONE)
    }

    /// Pins a key to a shard if it is not pinned yet, and says where it is pinned then. A pin
    /// that nobody publishes to may go again.
    ///
    /// # Errors
    /// [`Unavailable`] when the group does not answer.
    pub async fn pin_to(&self, key: StrandKey, shard: ShardNumber) -> Result<Pin, Unavailable> {
        let registry = self.registry.get().ok_or(Unavailable::NOT_DONE)?;
        registry.claim(key, shard).await.ok_or(Unavailable::UNKNOWN)
    }

    /// Has a key live in a shard, wherever it is now: what `orderly keys move` does. One that is
    /// not pinned yet is pinned there.
    ///
    /// # Errors
    /// [`Unavailable`]; the key may move all the same if that is unknown.
    pub async fn move_key(
        &self,
        key: StrandKey,
        to: ShardNumber,
        deadline: Option<Instant>,
    ) -> Result<MoveReply, Unavailable> {
        let pin = match self.pin(key).await? {
            Some(pin) => pin,
            None => self.pin_to(key, to).await?,
        };
        if pin.shard == to {
            return Ok(MoveReply::Moved);
        }
        let owner = self.client(pin.shard).ok_or(Unavailable::NOT_DONE)?;
        owner.move_key(key, to, deadline).await
    }

    /// The handle to a shard, if it is known.
    #[must_use]
    pub fn client(&self, shard: ShardNumber) -> Option<ShardClient> {
        self.clients.borrow().get(&shard).cloned()
    }

    /// The handles to all shards.
    #[must_use]
    pub fn all(&self) -> ShardClients {
        self.clients.borrow().clone()
    }

    /// The handles to all shards, as they become more.
    #[must_use]
    pub fn watch(&self) -> watch::Receiver<ShardClients> {
        self.clients.subscribe()
    }

    /// The service that other nodes call.
    #[must_use]
    pub fn service(&self) -> ForwardServer<impl proto::cluster::forward_server::Forward> {
        ForwardServer::new(Callee::new(self.clone()))
            .max_decoding_message_size(LINK_FRAME_BYTES_MAX)
            .max_encoding_message_size(LINK_FRAME_BYTES_MAX)
    }

    /// The shards of the catalogue, each with the nodes of its voters in the order in which they
    /// should be asked who leads. A shard is never forgotten: its number is never used again.
    pub fn place(&self, placed: impl IntoIterator<Item = (ShardNumber, Vec<NodeId>)>) {
        for (shard, voters) in placed {
            self.way(shard).place(voters);
        }
    }

    /// A replica of a shard is on this node.
    pub(crate) fn host(&self, shard: LocalShard) {
        let way = self.way(shard.shard());
        way.host(shard);
    }

    /// The shards with a replica on this node.
    pub(crate) fn hosted(&self) -> Vec<LocalShard> {
        let clients = self.all();
        let hosted = clients
            .values()
            .filter_map(|client| client.way().known().here.clone());
        hosted.collect()
    }

    /// The task of a shard's replica on this node.
    pub(super) fn local(&self, shard: ShardNumber) -> Option<LocalShard> {
        self.client(shard)?.way().known().here.clone()
    }

    /// Who leads a shard, as this node's replica knows.
    pub(super) fn leader_known_here(&self, shard: ShardNumber) -> Option<NodeId> {
        let leader = self.local(shard)?.leader();
        // Where the node itself has just begun or ceased to lead, others know no more.
        leader.filter(|leader| *leader != self.links.node())
    }

    /// The way to a shard, which is known from now on.
    fn way(&self, shard: ShardNumber) -> Arc<Way> {
        let mut way = None;
        self.clients.send_if_modified(|clients| {
            if let Some(client) = clients.get(&shard) {
                way = Some(client.way().clone());
                return false;
            }
            let new = Arc::new(Way::new(shard, self.links.clone()));
            way = Some(new.clone());
            Arc::make_mut(clients).insert(shard, ShardClient::new(new));
            true
        });
        way.expect("it was found or made")
    }
}

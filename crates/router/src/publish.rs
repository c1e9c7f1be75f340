//! A publish on its way to a shard.

use std::sync::atomic::Ordering;

use engine::Fault;
use model::run::RunPayload;
use model::{KeyHash, MessageId, TopicName};
use replica::ShardClient;
use thiserror::Error;
use tokio::time::Instant;

use crate::{Router, ShardError, Unavailable};

/// Why a publish was not answered with ids.
#[derive(Debug, Error)]
pub enum PublishError {
    /// *Refused*: there is no such topic.
    #[error("Resource not found (resource={}).", .0.id())]
    NotFound(TopicName),
    /// *Refused*, or *unknown*, as the cause says.
    #[error(transparent)]
    Shard(#[from] replica::shard::PublishError),
    /// The catalogue can't be read.
    #[error(transparent)]
    Fault(#[from] Fault),
}

impl Router {
    /// Publishes the messages of one request, which have one ordering key or none (an empty one),
    /// and gives the id of the first; the others count up from it.
    ///
    /// # Errors
    /// [`PublishError`]; after a deadline has passed nothing is stored any more.
    pub async fn publish(
        &self,
        topic: &TopicName,
        ordering_key: &str,
        payload: RunPayload,
        deadline: Option<Instant>,
    ) -> Result<MessageId, PublishError> {
        let found = self.topic(topic)?;
        let topic = found.ok_or_else(|| PublishError::NotFound(topic.clone()))?;
        let strand = self.inner.secret.key_hash(topic, ordering_key);
        let keyed = !ordering_key.is_empty();
        let shard = match keyed {
            true => self.shard_of(strand),
            false => self.shard_of_unkeyed(),
        };
        let unavailable = ShardError::Unavailable(Unavailable { unknown: false });
        let shard = shard.ok_or(unavailable)?;
        let published = shard
            .publish(topic, strand, keyed, payload.clone(), deadline)
            .await;
        let Err(ShardError::Moved { shard, .. }) = published else {
            return Ok(published?);
        };
        let owner = self.shards().client(shard).ok_or(unavailable)?;
        let published = owner.publish(topic, strand, keyed, payload, deadline).await;
        Ok(published?)
    }

    /// The shard of a key: spread by hash over the shards, the same for each message of the key.
    fn shard_of(&self, strand: KeyHash) -> Option<ShardClient> {
        let shards = self.shards().all();
        let hash = u128::from_be_bytes(strand.0) % (shards.len() as u128).max(1);
        shards.values().nth(hash as usize).cloned()
    }

    /// Messages without a key have no order: the shards take turns.
    fn shard_of_unkeyed(&self) -> Option<ShardClient> {
        let shards = self.shards().all();
        let turn = self.inner.unkeyed.fetch_add(1, Ordering::Relaxed);
        shards.values().nth(turn % shards.len().max(1)).cloned()
    }
}

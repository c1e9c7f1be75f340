//! Acks and deadlines on their way to the shards of their messages.

use std::collections::BTreeMap;
use std::time::Duration;

use engine::dispatch::{AckReply, ModifyReply};
use futures::future::join_all;
use model::{AckId, Incarnation, ShardNumber, SubscriptionName};
use replica::Unavailable;
use thiserror::Error;
use tokio::time::Instant;

use crate::{ResolveError, Router};

/// Why a call with ack ids was not carried out.
#[derive(Debug, Error)]
pub enum AcknowledgeError {
    /// Refused: the subscription can't be used.
    #[error(transparent)]
    Resolve(#[from] ResolveError),
    /// Refused: an id belongs to another subscription, or to an earlier one of the same name.
    #[error("an ack id is not of subscription {0}")]
    OtherSubscription(SubscriptionName),
    /// Unknown: it may have been done in part.
    #[error(transparent)]
    Unavailable(#[from] Unavailable),
}

impl Router {
    /// Acknowledges deliveries; one reply for each id, in order. The caller waits until
    /// `deadline`.
    ///
    /// # Errors
    /// [`AcknowledgeError`]; when refused, no id was processed.
    pub async fn acknowledge(
        &self,
        name: &SubscriptionName,
        ids: Vec<AckId>,
        deadline: Option<Instant>,
    ) -> Result<Vec<AckReply>, AcknowledgeError> {
        let subscription = self.check(name, ids.iter()).await?;
        let parts = by_shard(ids, |id| id);
        let calls = parts.into_iter().map(|(shard, (places, ids))| async move {
            let shard = self
                .shards()
                .client(shard)
                .ok_or(Unavailable { unknown: false })?;
            Ok((
                places,
                shard.acknowledge(subscription, ids, deadline).await?,
            ))
        });
        in_order(join_all(calls).await)
    }

    /// Lets leases end after the given time from now, zero being a nack; one reply for each id.
    /// The caller waits until `deadline`.
    ///
    /// # Errors
    /// [`AcknowledgeError`]; when refused, no id was processed.
    pub async fn modify_deadline(
        &self,
        name: &SubscriptionName,
        ids: Vec<(AckId, Duration)>,
        deadline: Option<Instant>,
    ) -> Result<Vec<ModifyReply>, AcknowledgeError> {
        let subscription = self.check(name, ids.iter().map(|(id, _)| id)).await?;
        let parts = by_shard(ids, |(id, _)| id);
        let calls = parts.into_iter().map(|(shard, (places, ids))| async move {
            let shard = self
                .shards()
                .client(shard)
                .ok_or(Unavailable { unknown: false })?;
            Ok((
                places,
                shard.modify_deadline(subscription, ids, deadline).await?,
            ))
        });
        in_order(join_all(calls).await)
    }

    async fn check<'a>(
        &self,
        name: &SubscriptionName,
        mut ids: impl Iterator<Item = &'a AckId>,
    ) -> Result<Incarnation, AcknowledgeError> {
        let subscription = self.subscription(name).await?.incarnation;
        if ids.any(|id| id.subscription != subscription) {
            return Err(AcknowledgeError::OtherSubscription(name.clone()));
        }
        Ok(subscription)
    }
}

/// Items of one shard, each with its place in the request.
type Placed<T> = (Vec<usize>, Vec<T>);

/// Items by shard, each with its place in the request.
fn by_shard<T>(items: Vec<T>, id: impl Fn(&T) -> &AckId) -> BTreeMap<ShardNumber, Placed<T>> {
    let mut parts: BTreeMap<ShardNumber, Placed<T>> = BTreeMap::new();
    for (place, item) in items.into_iter().enumerate() {
        let part = parts.entry(id(&item).message.shard()).or_default();
        part.0.push(place);
        part.1.push(item);
    }
    parts
}

/// The shards' replies, back in the order of the request.
fn in_order<R>(parts: Vec<Result<Placed<R>, Unavailable>>) -> Result<Vec<R>, AcknowledgeError> {
    let mut placed = Vec::new();
    for part in parts {
        let (places, replies) = part?;
        placed.extend(places.into_iter().zip(replies));
    }
    placed.sort_unstable_by_key(|(place, _)| *place);
    Ok(placed.into_iter().map(|(_, reply)| reply).collect())
}

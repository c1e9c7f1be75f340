//! Acks and deadlines on their way to the shards of their messages.
//!
//! The shard in an ack id is a hint: a shard that does not own the key any more says so, and the
//! pin of the key says who does. While a key moves, its acks wait here.

use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::time::Duration;

use engine::control::Subscription;
use engine::dispatch::{AckReply, ModifyReply};
use engine::registry::Pin;
use engine::table::strand::StrandKey;
use futures::future::join_all;
use model::limits::CALL_WAIT_MAX;
use model::{AckId, Incarnation, KeyHash, ShardNumber, SubscriptionName};
use replica::Unavailable;
use replica::shard::ShardClient;
use thiserror::Error;
use tokio::time::{Instant, sleep};

use crate::{ResolveError, Router};

/// The first pause before acks of a key that is on its way are tried again; each later one is
/// twice as long.
const PAUSE_MIN: Duration = Duration::from_millis(10);
/// The longest of these pauses.
const PAUSE_MAX: Duration = Duration::from_millis(200);

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

/// What a call asks of each ack id, and what shards answer.
trait Ask {
    type Item: Clone;
    type Reply: Copy + PartialEq;

    /// The reply that says to ask the owner of the key.
    const ELSEWHERE: Self::Reply;

    fn id(item: &Self::Item) -> &AckId;

    /// The answer for a key that nobody owns: everything of it was settled, and leases are over.
    fn of_no_owner(exactly_once: bool) -> Self::Reply;

    fn call(
        shard: ShardClient,
        subscription: Incarnation,
        items: Vec<Self::Item>,
        deadline: Option<Instant>,
    ) -> impl Future<Output = Result<Vec<Self::Reply>, Unavailable>> + Send;
}

struct Acks;
struct Deadlines;

/// An item that is not answered: its place in the call, and the shard to ask next.
struct Open<I> {
    place: usize,
    item: I,
    shard: ShardNumber,
}

impl Router {
    /// Acknowledges deliveries; one reply for each id, in order, none of them
    /// [`AckReply::Elsewhere`]. The caller waits until `deadline`.
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
        Ok(self.ask::<Acks>(&subscription, ids, deadline).await?)
    }

    /// Lets leases end after the given time from now, zero being a nack; one reply for each id,
    /// none of them [`ModifyReply::Elsewhere`]. The caller waits until `deadline`.
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
        Ok(self.ask::<Deadlines>(&subscription, ids, deadline).await?)
    }

    async fn check<'a>(
        &self,
        name: &SubscriptionName,
        mut ids: impl Iterator<Item = &'a AckId>,
    ) -> Result<Subscription, AcknowledgeError> {
        let subscription = self.subscription(name).await?;
        if ids.any(|id| id.subscription != subscription.incarnation) {
            return Err(AcknowledgeError::OtherSubscription(name.clone()));
        }
        Ok(subscription)
    }

    /// Asks the shards of the ids, then the owners of those keys that are elsewhere; again while a
    /// key is on its way, until the deadline.
    async fn ask<A: Ask>(
        &self,
        subscription: &Subscription,
        items: Vec<A::Item>,
        deadline: Option<Instant>,
    ) -> Result<Vec<A::Reply>, Unavailable> {
        let until = deadline.unwrap_or_else(|| Instant::now() + CALL_WAIT_MAX);
        let mut replies = vec![A::ELSEWHERE; items.len()];
        let mut open: Vec<Open<A::Item>> = at_hints::<A>(items);
        let mut pause = PAUSE_MIN;
        loop {
            let asked = self
                .ask_shards::<A>(subscription.incarnation, &open, deadline)
                .await?;
            for (place, reply) in asked {
                replies[place] = reply;
            }
            open.retain(|item| replies[item.place] == A::ELSEWHERE);
            if open.is_empty() {
                return Ok(replies);
            }
            let pins = self.pins_of::<A>(subscription, &open).await?;
            let mut is_known = true;
            open.retain_mut(|item| match pins[&A::id(&item.item).key] {
                None => {
                    let exactly_once = subscription.settings.exactly_once;
                    replies[item.place] = A::of_no_owner(exactly_once);
                    false
                }
                Some(pin) => {
                    is_known &= item.shard != pin.shard;
                    item.shard = pin.shard;
                    true
                }
            });
            if open.is_empty() {
                return Ok(replies);
            }
            if !is_known {
                if Instant::now() + pause >= until {
                    return Err(Unavailable { unknown: true });
                }
                sleep(pause).await;
                pause = (pause * 2).min(PAUSE_MAX);
            }
        }
    }

    /// What the shards say, each item with its place.
    async fn ask_shards<A: Ask>(
        &self,
        subscription: Incarnation,
        open: &[Open<A::Item>],
        deadline: Option<Instant>,
    ) -> Result<Vec<(usize, A::Reply)>, Unavailable> {
        let mut parts: BTreeMap<ShardNumber, (Vec<usize>, Vec<A::Item>)> = BTreeMap::new();
        for item in open {
            let part = parts.entry(item.shard).or_default();
            part.0.push(item.place);
            part.1.push(item.item.clone());
        }
        let calls = parts
            .into_iter()
            .map(|(shard, (places, items))| async move {
                let shard = self.shards().client(shard);
                let shard = shard.ok_or(Unavailable { unknown: false })?;
                let replies = A::call(shard, subscription, items, deadline).await?;
                Ok(places.into_iter().zip(replies).collect::<Vec<_>>())
            });
        let parts = join_all(calls).await.into_iter();
        let parts = parts.collect::<Result<Vec<_>, Unavailable>>()?;
        Ok(parts.into_iter().flatten().collect())
    }

    /// Where the keys of items are pinned now.
    async fn pins_of<A: Ask>(
        &self,
        subscription: &Subscription,
        open: &[Open<A::Item>],
    ) -> Result<BTreeMap<KeyHash, Option<Pin>>, Unavailable> {
        let keys: BTreeSet<_> = open.iter().map(|item| A::id(&item.item).key).collect();
        let topic = subscription.topic;
        let looks = keys.into_iter().map(|strand| async move {
            let pin = self.shards().pin(StrandKey { topic, strand }).await?;
            Ok((strand, pin))
        });
        join_all(looks).await.into_iter().collect()
    }
}

/// Items with the shards that gave their messages' ids out.
fn at_hints<A: Ask>(items: Vec<A::Item>) -> Vec<Open<A::Item>> {
    let items = items.into_iter().enumerate();
    items
        .map(|(place, item)| Open {
            place,
            shard: A::id(&item).message.shard(),
            item,
        })
        .collect()
}

impl Ask for Acks {
    type Item = AckId;
    type Reply = AckReply;

    const ELSEWHERE: AckReply = AckReply::Elsewhere;

    fn id(item: &AckId) -> &AckId {
        item
    }

    fn of_no_owner(exactly_once: bool) -> AckReply {
        match exactly_once {
            true => AckReply::Stale,
            false => AckReply::Acknowledged,
        }
    }

    async fn call(
        shard: ShardClient,
        subscription: Incarnation,
        ids: Vec<AckId>,
        deadline: Option<Instant>,
    ) -> Result<Vec<AckReply>, Unavailable> {
        shard.acknowledge(subscription, ids, deadline).await
    }
}

impl Ask for Deadlines {
    type Item = (AckId, Duration);
    type Reply = ModifyReply;

    const ELSEWHERE: ModifyReply = ModifyReply::Elsewhere;

    fn id(item: &(AckId, Duration)) -> &AckId {
        &item.0
    }

    fn of_no_owner(exactly_once: bool) -> ModifyReply {
        match exactly_once {
            true => ModifyReply::Stale,
            false => ModifyReply::Modified,
        }
    }

    async fn call(
        shard: ShardClient,
        subscription: Incarnation,
        ids: Vec<(AckId, Duration)>,
        deadline: Option<Instant>,
    ) -> Result<Vec<ModifyReply>, Unavailable> {
        shard.modify_deadline(subscription, ids, deadline).await
    }
}

//! A publish on its way to a shard.

use std::sync::atomic::Ordering;
use std::time::Duration;

use engine::Fault;
use engine::control::Topic;
use engine::route::{NoRoute, NotInTransit, Spread};
use model::limits::CALL_WAIT_MAX;
use model::run::RunPayload;
use model::{KeyHash, MessageId, RegionName, ShardNumber, TopicName};
use replica::LookError;
use thiserror::Error;
use tokio::time::{Instant, sleep};

use crate::{Router, ShardError, Unavailable};

/// Nodes that a publish is carried to before it starts again: where the key should be, and where
/// that node says it is.
const HOPS_MAX: usize = 2;
/// The first pause before it starts again, while a key changes its owner; each later one is twice
/// as long.
const PAUSE_MIN: Duration = Duration::from_millis(10);
/// The longest of these pauses.
const PAUSE_MAX: Duration = Duration::from_millis(500);

/// How long a shard is waited for where another could take the message: longer than it takes to
/// elect a leader.
const PATIENCE: Duration = Duration::from_secs(3);

/// Why a publish was not answered with ids.
#[derive(Debug, Error)]
pub enum PublishError {
    /// *Refused*: there is no such topic.
    #[error("Resource not found (resource={}).", .0.id())]
    NotFound(TopicName),
    /// *Refused*: the topic's messages must not pass through this region.
    #[error(transparent)]
    NotInTransit(#[from] NotInTransit),
    /// *Retry*: no shard may take the topic's messages yet.
    #[error(transparent)]
    NoRoute(#[from] NoRoute),
    /// *Retry*: the key is being moved to where the topic may be stored.
    #[error(
        "The ordering key is on its way to where the message_storage_policy and the survival goal \
         of topic {0} allow it. Please try again."
    )]
    Misplaced(TopicName),
    /// *Retry*, when subscribers have caught up.
    #[error(
        "The ordering key lives where topic {0} may not be stored any more, and has too many \
         unacknowledged messages to be moved. Let its subscribers acknowledge them, and try again."
    )]
    TooLargeToMove(TopicName),
    /// *Refused*, or *unknown*, as the cause says.
    #[error(transparent)]
    Shard(#[from] replica::shard::PublishError),
    /// The catalogue can't be read.
    #[error(transparent)]
    Fault(#[from] Fault),
}

impl From<LookError> for PublishError {
    fn from(why: LookError) -> Self {
        match why {
            LookError::Unavailable(why) => ShardError::Unavailable(why).into(),
            LookError::Fault(fault) => fault.into(),
        }
    }
}

/// The messages of one request.
struct Publish {
    strand: KeyHash,
    keyed: bool,
    payload: RunPayload,
    deadline: Option<Instant>,
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
        let found = self.topic(topic).await?;
        let topic = found.ok_or_else(|| PublishError::NotFound(topic.clone()))?;
        self.admit(&topic)??;
        let publish = Publish {
            strand: self.inner.secret.key_hash(topic.incarnation, ordering_key),
            keyed: !ordering_key.is_empty(),
            payload,
            deadline,
        };
        self.carry(&topic, &publish).await
    }

    /// Carries a publish to the owner of its key; again while that changes, until the deadline.
    async fn carry(&self, topic: &Topic, publish: &Publish) -> Result<MessageId, PublishError> {
        let until = publish.deadline;
        let until = until.unwrap_or_else(|| Instant::now() + CALL_WAIT_MAX);
        let mut pause = PAUSE_MIN;
        loop {
            let (mut shard, mut home) = self.first_shard(topic, publish)?;
            let mut late: PublishError = ShardError::from(Unavailable { unknown: false }).into();
            for _ in 0..HOPS_MAX {
                if !self.fits(topic, shard)? {
                    self.relocate(topic, publish.strand, until).await?;
                    late = PublishError::Misplaced(topic.name.clone());
                    break;
                }
                let began = Instant::now();
                let deadline = match &home {
                    Some(_) => Some(until.min(began + PATIENCE)),
                    None => publish.deadline,
                };
                let answer = self.publish_at(shard, topic, publish, deadline).await;
                match (&answer, &home) {
                    (Err(ShardError::Unavailable(why)), Some(home)) => {
                        self.unanswered(home.clone(), began);
                        if !why.unknown {
                            break;
                        }
                    }
                    (_, Some(home)) => self.answered(home),
                    (_, None) => {}
                }
                match answer {
                    Err(ShardError::Moved {
                        shard: owner,
                        epoch,
                    }) => {
                        self.inner.pins.learn(publish.strand, owner, epoch);
                        (shard, home) = (owner, None);
                    }
                    answer => return Ok(answer?),
                }
            }
            if Instant::now() + pause >= until {
                return Err(late);
            }
            sleep(pause).await;
            pause = (pause * 2).min(PAUSE_MAX);
        }
    }

    /// Where a publish goes first: where its key was found before, or where a new one belongs, with
    /// the region that may be passed over then.
    /// Messages without a key have no order: the shards take turns.
    fn first_shard(
        &self,
        topic: &Topic,
        publish: &Publish,
    ) -> Result<(ShardNumber, Option<RegionName>), PublishError> {
        let spread = match publish.keyed {
            true => Spread::Key(publish.strand),
            false => Spread::Turn(self.inner.unkeyed.fetch_add(1, Ordering::Relaxed)),
        };
        let found = publish.keyed.then(|| self.inner.pins.find(publish.strand));
        match found.flatten() {
            Some(shard) => Ok((shard, None)),
            None => {
                let route = self.route(topic, spread)??;
                Ok((route.shard, route.is_replaceable.then_some(route.home)))
            }
        }
    }

    async fn publish_at(
        &self,
        shard: ShardNumber,
        topic: &Topic,
        publish: &Publish,
        deadline: Option<Instant>,
    ) -> Result<MessageId, ShardError> {
        let shard = self.shards().client(shard);
        let shard = shard.ok_or(Unavailable { unknown: false })?;
        let payload = publish.payload.clone();
        shard
            .publish(
                topic.incarnation,
                publish.strand,
                publish.keyed,
                payload,
                deadline,
            )
            .await
    }
}

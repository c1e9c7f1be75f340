//! The topic and subscriptions of one run.

use std::process;
use std::time::{SystemTime, UNIX_EPOCH};

use proto::pubsub::{DeleteSubscriptionRequest, DeleteTopicRequest, Subscription, Topic};
use tokio::task::JoinSet;
use tonic::Status;

use super::memory::settled_bytes;
use super::options::Options;
use crate::cli::{Failure, Target};

/// The ack deadline of the subscriptions: consumers ack at once, so that it runs out only by fault.
pub(crate) const ACK_DEADLINE_SECONDS: i32 = 60;
/// Idle subscriptions that are created or deleted at once.
const AT_ONCE: usize = 16;

/// What a run creates, and deletes again.
pub(crate) struct Resources {
    target: Target,
    /// The full name of the topic.
    pub(crate) topic: String,
    /// The full name of the subscription from which the consumers pull.
    pub(crate) subscription: String,
    idle: Vec<String>,
    /// What the watched process had before all this, in bytes.
    memory_before: Option<u64>,
}

impl Resources {
    /// Creates them under names that no other run has.
    pub(crate) async fn create(target: &Target, options: &Options) -> Result<Self, Failure> {
        let since = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        let run = format!("bench-{}-{}", since.as_millis(), process::id());
        let memory_before = watched_bytes(options).await?;
        let resources = Resources {
            memory_before,
            target: target.clone(),
            topic: target.topic(&run)?,
            subscription: target.subscription(&run)?,
            idle: (0..options.idle_subscriptions)
                .map(|number| target.subscription(&format!("{run}-idle-{number}")))
                .collect::<Result<_, _>>()?,
        };
        let topic = Topic {
            name: resources.topic.clone(),
            labels: options.topic_labels.iter().cloned().collect(),
            ..Topic::default()
        };
        target.publisher().await?.create_topic(topic).await?;
        let created = resources.create_subscriptions(options).await;
        if created.is_err() {
            // The first failure says more than one of the clean-up after it.
            let _ = resources.delete().await;
        }
        created.map(|()| resources)
    }

    async fn create_subscriptions(&self, options: &Options) -> Result<(), Failure> {
        let template = Subscription {
            topic: self.topic.clone(),
            enable_message_ordering: !options.unordered,
            ack_deadline_seconds: ACK_DEADLINE_SECONDS,
            ..Subscription::default()
        };
        let subscriber = self.target.subscriber().await?;
        let create = |name: String, enable_exactly_once_delivery| {
            let mut subscriber = subscriber.clone();
            let subscription = Subscription {
                name,
                enable_exactly_once_delivery,
                ..template.clone()
            };
            async move { subscriber.create_subscription(subscription).await.map(drop) }
        };
        create(self.subscription.clone(), options.exactly_once).await?;
        all(self.idle.iter().cloned().map(|name| create(name, false))).await
    }

    /// What the watched process had before, and has now, in bytes.
    pub(crate) async fn memory(&self, options: &Options) -> Result<Option<[u64; 2]>, Failure> {
        let now = watched_bytes(options).await?;
        Ok(self
            .memory_before
            .zip(now)
            .map(|(before, now)| [before, now]))
    }

    /// Deletes all of them.
    pub(crate) async fn delete(&self) -> Result<(), Failure> {
        let subscriber = self.target.subscriber().await?;
        let delete = |subscription: String| {
            let mut subscriber = subscriber.clone();
            let request = DeleteSubscriptionRequest { subscription };
            async move { subscriber.delete_subscription(request).await.map(drop) }
        };
        let names = self.idle.iter().chain([&self.subscription]);
        let deleted = all(names.cloned().map(delete)).await;
        let request = DeleteTopicRequest {
            topic: self.topic.clone(),
        };
        self.target.publisher().await?.delete_topic(request).await?;
        deleted
    }
}

/// What the watched process has, in bytes, if one is watched.
async fn watched_bytes(options: &Options) -> Result<Option<u64>, Failure> {
    match options.watch_process {
        Some(process) => settled_bytes(process).await.map(Some),
        None => Ok(None),
    }
}

/// Makes calls, some at once; returns the first failure.
async fn all<Call>(calls: impl Iterator<Item = Call>) -> Result<(), Failure>
where
    Call: Future<Output = Result<(), Status>> + Send + 'static,
{
    let mut running = JoinSet::new();
    for call in calls {
        if running.len() == AT_ONCE {
            joined(running.join_next().await)?;
        }
        running.spawn(call);
    }
    while let ended @ Some(_) = running.join_next().await {
        joined(ended)?;
    }
    Ok(())
}

fn joined(
    ended: Option<Result<Result<(), Status>, tokio::task::JoinError>>,
) -> Result<(), Failure> {
    match ended {
        Some(Ok(answer)) => Ok(answer?),
        Some(Err(broken)) => std::panic::resume_unwind(broken.into_panic()),
        None => Ok(()),
    }
}

//! Topics and subscriptions, created over whichever node is ready.

use std::time::Duration;

use proto::pubsub::publisher_client::PublisherClient;
use proto::pubsub::subscriber_client::SubscriberClient;
use proto::pubsub::{Subscription, Topic};

use super::load::retried;

/// The longest wait for a resource to be created before it is asked for again.
const CALL_MAX: Duration = Duration::from_secs(10);

/// Creates a topic with nothing but a name.
pub(crate) async fn create_topic(endpoints: &[String], name: &str) {
    let topic = Topic {
        name: name.to_owned(),
        ..Topic::default()
    };
    create_topic_as(endpoints, &topic).await;
}

/// Creates a topic.
pub(crate) async fn create_topic_as(endpoints: &[String], topic: &Topic) {
    retried(endpoints, CALL_MAX, async |channel| {
        let mut publisher = PublisherClient::new(channel);
        publisher.create_topic(topic.clone()).await.map(drop)
    })
    .await;
}

/// Creates a subscription.
pub(crate) async fn create_subscription(endpoints: &[String], subscription: &Subscription) {
    retried(endpoints, CALL_MAX, async |channel| {
        let mut subscriber = SubscriberClient::new(channel);
        let created = subscriber.create_subscription(subscription.clone()).await;
        created.map(drop)
    })
    .await;
}

//! Creates the topic and its subscriptions.

use proto::pubsub::publisher_client::PublisherClient;
use proto::pubsub::subscriber_client::SubscriberClient;
use proto::pubsub::{Subscription, Topic};
use tokio::sync::watch;
use tokio::time::sleep;
use tonic::{Code, Status};

use super::{ACK_DEADLINE, AGAIN_AFTER, Endpoints, Phase, Subscribed, TOPIC, timed};
use crate::history::What;
use crate::nodes::recorder::Recorder;

/// Tries until everything is there, and then begins the load.
pub(in crate::nodes) async fn administrate(
    endpoints: Endpoints,
    recorder: Recorder,
    subscriptions: Vec<Subscribed>,
    phase: watch::Sender<Phase>,
) {
    while !is_there(create_topic(&endpoints).await) {
        again(&endpoints).await;
    }
    for subscription in subscriptions {
        while !is_there(create_subscription(&endpoints, subscription).await) {
            again(&endpoints).await;
        }
        recorder.event(What::Created {
            subscription: subscription.number,
            ordered: true,
            exactly_once: subscription.exactly_once,
            may_wait: false,
        });
    }
    phase.send_replace(Phase::Load);
}

async fn create_topic(endpoints: &Endpoints) -> Result<(), Status> {
    let topic = Topic {
        name: TOPIC.to_owned(),
        ..Topic::default()
    };
    let mut client = PublisherClient::new(endpoints.channel());
    client.create_topic(timed(topic)).await.map(drop)
}

async fn create_subscription(endpoints: &Endpoints, wanted: Subscribed) -> Result<(), Status> {
    let subscription = Subscription {
        name: wanted.name(),
        topic: TOPIC.to_owned(),
        ack_deadline_seconds: ACK_DEADLINE.as_secs() as i32,
        enable_message_ordering: true,
        enable_exactly_once_delivery: wanted.exactly_once,
        ..Subscription::default()
    };
    let mut client = SubscriberClient::new(endpoints.channel());
    client
        .create_subscription(timed(subscription))
        .await
        .map(drop)
}

/// An earlier attempt may have been carried out.
fn is_there(created: Result<(), Status>) -> bool {
    match created {
        Ok(()) => true,
        Err(status) => {
            assert_ne!(status.code(), Code::InvalidArgument, "{status}");
            status.code() == Code::AlreadyExists
        }
    }
}

async fn again(endpoints: &Endpoints) {
    endpoints.next();
    sleep(AGAIN_AFTER).await;
}

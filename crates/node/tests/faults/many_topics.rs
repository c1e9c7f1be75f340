//! Nodes are killed again and again while there are many topics: none is forgotten, and no backlog
//! is lost.

use std::collections::BTreeSet;
use std::time::Duration;

use proto::pubsub::publisher_client::PublisherClient;
use proto::pubsub::subscriber_client::SubscriberClient;
use proto::pubsub::{
    AcknowledgeRequest, GetSubscriptionRequest, GetTopicRequest, ListSubscriptionsRequest,
    ListTopicsRequest, PublishRequest, PubsubMessage, PullRequest, Subscription,
};
use tokio::time::timeout;
use tonic::Status;
use tonic::transport::Channel;

use crate::audit::load::retried;
use crate::audit::resources::{create_subscription, create_topic};
use crate::cluster::Cluster;

const PROJECT: &str = "projects/orderly";
/// Topics, each with a subscription and a backlog, and how often nodes are killed. With
/// `ORDERLY_TEST_ROUNDS` more often.
const TOPICS: usize = 20;
const ROUNDS: &str = "ORDERLY_TEST_ROUNDS";
/// How long a call may take before it is made again.
const CALL_MAX: Duration = Duration::from_secs(10);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_resource_and_no_backlog_is_lost_where_nodes_die() {
    let mut cluster = Cluster::of_regions().await;
    let endpoints = cluster.endpoints();
    let rounds = std::env::var(ROUNDS).map_or(2, |rounds| rounds.parse().expect("a number"));
    for round in 0..rounds {
        // Topics are created while nodes are missing, too.
        let dies = round % 3;
        cluster.members()[dies].kill();
        for number in (round..TOPICS).step_by(rounds) {
            create(&endpoints, number).await;
        }
        cluster.members()[dies].start();
        cluster.ready().await;
    }
    for endpoint in &endpoints {
        all_are_known(std::slice::from_ref(endpoint)).await;
    }
    for number in 0..TOPICS {
        let received = pull(&endpoints, number).await;
        assert!(
            received.contains(&text(number)),
            "topic {number}: {received:?}"
        );
    }
    cluster.replicas_are_alike().await;
}

/// A topic, its subscription, and one message that waits for it.
async fn create(endpoints: &[String], number: usize) {
    create_topic(endpoints, &topic(number)).await;
    let resource = Subscription {
        name: subscription(number),
        topic: topic(number),
        enable_message_ordering: true,
        ..Subscription::default()
    };
    create_subscription(endpoints, &resource).await;
    let message = PubsubMessage {
        data: text(number).into(),
        ordering_key: format!("key-{number}"),
        ..PubsubMessage::default()
    };
    retried(endpoints, CALL_MAX, async |channel| {
        let request = PublishRequest {
            topic: topic(number),
            messages: proto::wire::encode_all(std::slice::from_ref(&message)),
        };
        PublisherClient::new(channel)
            .publish(request)
            .await
            .map(drop)
    })
    .await;
}

/// Every topic and every subscription is listed, and can be looked up.
async fn all_are_known(endpoints: &[String]) {
    let listed = retried(endpoints, CALL_MAX, list).await;
    let wanted = (0..TOPICS).flat_map(|number| [topic(number), subscription(number)]);
    for name in wanted {
        assert!(
            listed.contains(&name),
            "{name} is not listed by {endpoints:?}"
        );
    }
    for number in 0..TOPICS {
        retried(endpoints, CALL_MAX, async |channel: Channel| {
            let topic = topic(number);
            PublisherClient::new(channel.clone())
                .get_topic(GetTopicRequest { topic })
                .await?;
            let subscription = subscription(number);
            let request = GetSubscriptionRequest { subscription };
            let mut subscriber = SubscriberClient::new(channel);
            subscriber.get_subscription(request).await.map(drop)
        })
        .await;
    }
}

async fn list(channel: Channel) -> Result<BTreeSet<String>, Status> {
    let topics = ListTopicsRequest {
        project: PROJECT.to_owned(),
        page_size: 1_000,
        ..ListTopicsRequest::default()
    };
    let mut publisher = PublisherClient::new(channel.clone());
    let topics = publisher.list_topics(topics).await?.into_inner().topics;
    let subscriptions = ListSubscriptionsRequest {
        project: PROJECT.to_owned(),
        page_size: 1_000,
        ..ListSubscriptionsRequest::default()
    };
    let mut subscriber = SubscriberClient::new(channel);
    let subscriptions = subscriber.list_subscriptions(subscriptions).await?;
    let subscriptions = subscriptions.into_inner().subscriptions;
    let topics = topics.into_iter().map(|topic| topic.name);
    let names = topics.chain(subscriptions.into_iter().map(|one| one.name));
    Ok(names.collect())
}

/// The texts of what waits, which is acknowledged.
async fn pull(endpoints: &[String], number: usize) -> Vec<String> {
    let pulled = retried(endpoints, CALL_MAX, async |channel| {
        let mut subscriber = SubscriberClient::new(channel);
        let request = PullRequest {
            subscription: subscription(number),
            max_messages: 10,
            ..PullRequest::default()
        };
        let received = subscriber
            .pull(request)
            .await?
            .into_inner()
            .received_messages;
        let received = proto::wire::decode_all::<proto::pubsub::ReceivedMessage>(&received);
        let received = received.expect("a node sends messages");
        let request = AcknowledgeRequest {
            subscription: subscription(number),
            ack_ids: received.iter().map(|one| one.ack_id.clone()).collect(),
        };
        // An ack that is lost brings the message again, which is no loss.
        let _ = timeout(CALL_MAX, subscriber.acknowledge(request)).await;
        Ok(received)
    })
    .await;
    let messages = pulled.into_iter().filter_map(|received| received.message);
    let text = |message: PubsubMessage| String::from_utf8_lossy(&message.data).into_owned();
    messages.map(text).collect()
}

fn topic(number: usize) -> String {
    format!("{PROJECT}/topics/orders-{number}")
}

fn subscription(number: usize) -> String {
    format!("{PROJECT}/subscriptions/shipping-{number}")
}

fn text(number: usize) -> String {
    format!("order {number}")
}

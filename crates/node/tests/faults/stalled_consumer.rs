//! A consumer in one region stalls with much outstanding, and another one joins in another region.

use std::collections::BTreeMap;
use std::ops::Range;
use std::time::Duration;

use proto::pubsub::publisher_client::PublisherClient;
use proto::pubsub::subscriber_client::SubscriberClient;
use proto::pubsub::{
    AcknowledgeRequest, PublishRequest, PubsubMessage, ReceivedMessage, StreamingPullRequest,
    StreamingPullResponse, Subscription,
};
use tokio::time::{Instant, interval, timeout};
use tokio_stream::StreamExt;
use tonic::Streaming;
use tonic::transport::Channel;

use crate::audit::resources::{create_subscription, create_topic};
use crate::audit::way::Way;
use crate::cluster::Cluster;

const TOPIC: &str = "projects/orderly/topics/orders";
const SUBSCRIPTION: &str = "projects/orderly/subscriptions/shipping";
/// Keys, and messages of each that the first consumer holds.
const KEYS: usize = 10;
const HELD: usize = 50;
/// Keys that come later, and their messages.
const LATER: usize = 50;
/// Nothing that is not held may take longer.
const SOON: Duration = Duration::from_secs(20);
/// Longer than the test takes: no lease may end.
const ACK_DEADLINE_SECONDS: i32 = 300;
/// Between two attempts.
const LOOK_EVERY: Duration = Duration::from_millis(100);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_consumer_that_stalls_slows_no_key_that_it_does_not_hold() {
    let cluster = Cluster::of_regions().await;
    let endpoints = cluster.endpoints();
    create(&endpoints).await;
    let mut seen = Seen::default();

    let mut stalls = Consumer::new(&endpoints, 0, KEYS * HELD).await;
    publish(&endpoints, "held", 0..HELD).await;
    let mut held = Vec::new();
    while held.len() < KEYS * HELD {
        held.extend(seen.take(stalls.next().await));
    }

    let mut joins = Consumer::new(&endpoints, 2, 1).await;
    publish(&endpoints, "held", HELD..HELD + LATER).await;
    publish(&endpoints, "free", 0..LATER).await;
    for _ in 0..KEYS * LATER {
        let received = seen.take(joins.next().await);
        assert_eq!(received.len(), 1, "one may be outstanding");
        let key = &received[0].key;
        assert!(key.starts_with("free"), "{key} is held by the other");
        joins.acknowledge(&received).await;
    }

    stalls.acknowledge(&held).await;
    while seen.messages() < KEYS * (HELD + LATER + LATER) {
        tokio::select! {
            received = stalls.next() => stalls.acknowledge(&seen.take(received)).await,
            received = joins.next() => joins.acknowledge(&seen.take(received)).await,
        }
    }
    cluster.replicas_are_alike().await;
}

/// A message as it was received.
struct Received {
    key: String,
    number: usize,
    ack_id: String,
}

/// Which number of each key comes next, over all consumers.
#[derive(Default)]
struct Seen(BTreeMap<String, usize>);

impl Seen {
    /// Nothing may be left out, and nothing comes again: no lease ends.
    fn take(&mut self, received: Vec<Received>) -> Vec<Received> {
        for Received { key, number, .. } in &received {
            let next = self.0.entry(key.clone()).or_default();
            assert_eq!(number, next, "of {key}");
            *next += 1;
        }
        received
    }

    fn messages(&self) -> usize {
        self.0.values().sum()
    }
}

/// An open stream.
struct Consumer {
    client: SubscriberClient<Channel>,
    responses: Streaming<StreamingPullResponse>,
}

impl Consumer {
    async fn new(endpoints: &[String], node: usize, outstanding_max: usize) -> Self {
        let channel = Way::new(&endpoints[node..=node], 0).channel().await;
        let mut client = SubscriberClient::new(channel);
        let first = StreamingPullRequest {
            subscription: SUBSCRIPTION.to_owned(),
            stream_ack_deadline_seconds: ACK_DEADLINE_SECONDS,
            max_outstanding_messages: outstanding_max as i64,
            ..StreamingPullRequest::default()
        };
        let requests = tokio_stream::once(first).chain(tokio_stream::pending());
        let responses = client.streaming_pull(requests).await;
        Consumer {
            client,
            responses: responses.expect("a stream").into_inner(),
        }
    }

    async fn next(&mut self) -> Vec<Received> {
        let response = timeout(SOON, self.responses.message()).await;
        let response = response.expect("something comes soon");
        let response = response.expect("the stream stays open");
        let received = response.expect("the stream stays open").received_messages;
        let received = proto::wire::decode_all::<ReceivedMessage>(&received);
        let received = received.expect("a node sends messages").into_iter();
        received.map(Received::new).collect()
    }

    async fn acknowledge(&mut self, received: &[Received]) {
        let request = AcknowledgeRequest {
            subscription: SUBSCRIPTION.to_owned(),
            ack_ids: received.iter().map(|one| one.ack_id.clone()).collect(),
        };
        let give_up = Instant::now() + SOON;
        let mut look = interval(LOOK_EVERY);
        // Leaders may still be on their way home.
        while let Err(status) = self.client.acknowledge(request.clone()).await {
            assert!(Instant::now() < give_up, "acks are not taken: {status:?}");
            look.tick().await;
        }
    }
}

impl Received {
    fn new(received: ReceivedMessage) -> Self {
        let message = received.message.expect("a delivery has a message");
        let text = String::from_utf8_lossy(&message.data);
        Received {
            number: text.parse().expect("only this test publishes"),
            key: message.ordering_key,
            ack_id: received.ack_id,
        }
    }
}

async fn create(endpoints: &[String]) {
    create_topic(endpoints, TOPIC).await;
    let subscription = Subscription {
        name: SUBSCRIPTION.to_owned(),
        topic: TOPIC.to_owned(),
        enable_message_ordering: true,
        // So that leases outlive a change of leader.
        enable_exactly_once_delivery: true,
        ..Subscription::default()
    };
    create_subscription(endpoints, &subscription).await;
}

/// Publishes these numbers to each key of a kind, each kind of key through another region.
async fn publish(endpoints: &[String], kind: &str, numbers: Range<usize>) {
    for key in 0..KEYS {
        let message = |number: usize| PubsubMessage {
            data: number.to_string().into(),
            ordering_key: format!("{kind}-{key}"),
            ..PubsubMessage::default()
        };
        let request = PublishRequest {
            topic: TOPIC.to_owned(),
            messages: proto::wire::encode_all(&numbers.clone().map(message).collect::<Vec<_>>()),
        };
        let channel = Way::new(endpoints, key).channel().await;
        let answer = PublisherClient::new(channel).publish(request).await;
        // Nothing is lost in this case: a failure would leave open whether they are stored.
        answer.expect("a publish is answered");
    }
}

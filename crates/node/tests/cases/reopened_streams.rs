//! Ten streams on one connection, opened again and again: no key waits for a lease.

use std::collections::HashMap;
use std::time::Duration;

use proto::pubsub::{ReceivedMessage, StreamingPullRequest, Subscription};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout_at};

use crate::client::{Client, SOON, exactly_once, message, text};
use crate::node::Node;
use crate::order::Order;
use crate::stream::messages;

const STREAMS: usize = 10;
const PUBLISHERS: usize = 10;
const KEYS: usize = 200;
/// Messages of each key.
const ROUNDS: usize = 8;
/// How long a stream lives: everything is on several of them.
const STREAM_LIFE: Duration = Duration::from_secs(2);
/// How long a key may wait from its publish on, though its lease is one of two minutes: what a
/// closed stream never confirmed is released after five seconds, and what waits behind it follows.
const WAIT_MAX: Duration = Duration::from_secs(10);
const ACK_DEADLINE_SECONDS: i32 = 120;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_key_waits_for_a_lease() {
    let node = Node::start();
    let client = Client::new(&node);
    let topic = client.topic("orders").await;
    let rest = Subscription {
        enable_message_ordering: true,
        ack_deadline_seconds: ACK_DEADLINE_SECONDS,
        ..exactly_once()
    };
    let subscription = client.subscription("shipping", &topic, rest).await;
    let (sender, mut received) = mpsc::unbounded_channel();
    let mut consumers = JoinSet::new();
    for _ in 0..STREAMS {
        consumers.spawn(consume(
            client.clone(),
            subscription.clone(),
            sender.clone(),
        ));
    }
    let published = publish(&client, &topic).await;

    let mut order = Order::default();
    for _ in 0..KEYS * ROUNDS {
        let next = timeout_at(Instant::now() + SOON, received.recv()).await;
        let (one, at): (ReceivedMessage, Instant) = next
            .expect("each is delivered in time")
            .expect("consumers go on");
        let key = one
            .message
            .as_ref()
            .expect("it has one")
            .ordering_key
            .clone();
        let took = at.saturating_duration_since(published[&(key.clone(), text(&one).to_owned())]);
        assert!(took < WAIT_MAX, "{key} waited {took:?}");
        order.receive(&[one]);
    }
    let ended = consumers.try_join_next();
    assert!(ended.is_none(), "a consumer stopped: {ended:?}");
}

/// When each message was sent, by key and text.
type Published = HashMap<(String, String), Instant>;

/// Publishes to all keys; several at once, and to each of them in its order.
async fn publish(client: &Client, topic: &str) -> Published {
    let mut publishers = JoinSet::new();
    for publisher in 0..PUBLISHERS {
        let (client, topic) = (client.clone(), topic.to_owned());
        publishers.spawn(async move {
            let mut published = Published::new();
            for round in 0..ROUNDS {
                for key in (publisher..KEYS).step_by(PUBLISHERS) {
                    let (key, text) = (format!("key-{key}"), round.to_string());
                    let sent = client.try_publish(&topic, &[message(&key, &text)]).await;
                    sent.expect("it is published");
                    published.insert((key, text), Instant::now());
                }
            }
            published
        });
    }
    publishers.join_all().await.into_iter().flatten().collect()
}

/// Acknowledges what comes by unary calls, on one stream after another.
async fn consume(
    client: Client,
    subscription: String,
    sender: mpsc::UnboundedSender<(ReceivedMessage, Instant)>,
) {
    loop {
        let first = StreamingPullRequest {
            stream_ack_deadline_seconds: ACK_DEADLINE_SECONDS,
            ..StreamingPullRequest::default()
        };
        let mut stream = client.stream(&subscription, first).await;
        let end = Instant::now() + STREAM_LIFE;
        while let Some(response) = stream.response_until(end).await {
            settle(&client, &subscription, messages(&response), &sender).await;
        }
        // What was on its way is still read and acknowledged, with the stream closed.
        for response in stream.rest().await {
            settle(&client, &subscription, messages(&response), &sender).await;
        }
    }
}

async fn settle(
    client: &Client,
    subscription: &str,
    received: Vec<ReceivedMessage>,
    sender: &mpsc::UnboundedSender<(ReceivedMessage, Instant)>,
) {
    for one in &received {
        // It fails only at the end of the test.
        let _ = sender.send((one.clone(), Instant::now()));
    }
    if !received.is_empty() {
        client.acknowledge(subscription, &received).await;
    }
}

//! A message that always fails makes way for what comes after it in its key.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use proto::pubsub::{DeadLetterPolicy, StreamingPullRequest, Subscription};
use tokio::time::Instant;

use crate::client::{Client, SOON, ordered, text, texts};
use crate::node::Node;
use crate::stream::{Stream, messages};

const KEYS: usize = 50;
const ATTEMPTS: i32 = 5;

/// A topic whose ordered subscription forwards what failed, and the subscription of the forwards.
struct Names {
    topic: String,
    subscription: String,
    dead: String,
}

async fn create(client: &Client) -> Names {
    let topic = client.topic("orders").await;
    let dead_letter_topic = client.topic("dead-letters").await;
    let dead = client.subscription("dead", &dead_letter_topic, ordered());
    let dead = dead.await;
    let rest = Subscription {
        dead_letter_policy: Some(DeadLetterPolicy {
            dead_letter_topic,
            max_delivery_attempts: ATTEMPTS,
        }),
        ..ordered()
    };
    let subscription = client.subscription("shipping", &topic, rest).await;
    Names {
        topic,
        subscription,
        dead,
    }
}

/// Gives back what comes until each message has been given back so often as is allowed.
async fn fail_all(client: &Client, names: &Names, stream: &mut Stream) {
    let mut deliveries = 0;
    while deliveries < KEYS * ATTEMPTS as usize {
        let received = messages(&stream.response_within(SOON).await);
        for one in &received {
            assert!(one.delivery_attempt <= ATTEMPTS, "{one:?}");
        }
        client.nack(&names.subscription, &received).await;
        deliveries += received.len();
    }
}

fn key(prefix: &str, number: usize) -> String {
    format!("{prefix}-{number}")
}

/// Each of the failed messages is on the dead-letter topic, under its key.
async fn assert_forwarded(client: &Client, names: &Names) {
    let mut keys = BTreeSet::new();
    while keys.len() < KEYS {
        let pulled = client.pull(&names.dead, 100).await;
        for one in &pulled {
            assert_eq!(text(one), "failing");
            keys.insert(one.message.clone().unwrap().ordering_key);
        }
        client.acknowledge(&names.dead, &pulled).await;
    }
    let expected: BTreeSet<_> = (0..KEYS).map(|number| key("a", number)).collect();
    assert_eq!(keys, expected);
}

async fn publish_failing(client: &Client, names: &Names) {
    for number in 0..KEYS {
        client
            .publish(&names.topic, &key("a", number), &["failing"])
            .await;
    }
}

/// When the good message of each key came.
async fn arrivals(
    client: &Client,
    names: &Names,
    stream: &mut Stream,
) -> BTreeMap<String, Instant> {
    let mut arrived = BTreeMap::new();
    while arrived.len() < 2 * KEYS {
        let received = messages(&stream.response_within(SOON).await);
        let now = Instant::now();
        client.acknowledge(&names.subscription, &received).await;
        for one in received {
            assert_eq!(text(&one), "good");
            arrived.insert(one.message.unwrap().ordering_key, now);
        }
    }
    arrived
}

#[tokio::test]
async fn later_messages_of_the_key_are_as_quick_as_others() {
    let node = Node::start();
    let client = Client::new(&node);
    let names = create(&client).await;
    publish_failing(&client, &names).await;
    let first = StreamingPullRequest::default();
    let mut stream = client.stream(&names.subscription, first).await;
    fail_all(&client, &names, &mut stream).await;

    for number in 0..KEYS {
        for prefix in ["a", "b"] {
            client
                .publish(&names.topic, &key(prefix, number), &["good"])
                .await;
        }
    }
    let arrived = arrivals(&client, &names, &mut stream).await;
    for number in 0..KEYS {
        let (behind, other) = (arrived[&key("a", number)], arrived[&key("b", number)]);
        let later = behind.saturating_duration_since(other);
        assert!(later < Duration::from_secs(2), "{number}: {later:?} later");
    }
    assert_forwarded(&client, &names).await;
}

#[tokio::test]
async fn a_crash_after_the_last_attempt_loses_nothing() {
    let mut node = Node::start();
    let client = Client::new(&node);
    let names = create(&client).await;
    publish_failing(&client, &names).await;
    let first = StreamingPullRequest::default();
    let mut stream = client.stream(&names.subscription, first).await;
    fail_all(&client, &names, &mut stream).await;
    node.kill();
    node.restart();

    let client = Client::new(&node);
    client.publish(&names.topic, "b", &["good"]).await;
    for number in 0..KEYS {
        client
            .publish(&names.topic, &key("a", number), &["good"])
            .await;
    }
    // Those not forwarded yet come once more at most, and first of their key.
    let mut good = BTreeSet::new();
    while good.len() < KEYS + 1 {
        let pulled = client.pull(&names.subscription, 100).await;
        for one in &pulled {
            let key = one.message.clone().unwrap().ordering_key;
            match text(one) {
                "good" => assert!(good.insert(key), "{one:?}"),
                _ => assert!(!good.contains(&key), "{one:?}"),
            }
        }
        let (good, failing): (Vec<_>, Vec<_>) =
            pulled.into_iter().partition(|one| text(one) == "good");
        if !good.is_empty() {
            client.acknowledge(&names.subscription, &good).await;
        }
        if !failing.is_empty() {
            assert_eq!(texts(&failing[..1]), ["failing"]);
            client.nack(&names.subscription, &failing).await;
        }
    }
    assert_forwarded(&client, &names).await;
}

//! A topic's storage policy or survival goal changes while its keys are in use: from then on nothing
//! more is stored where it may not be, and every key keeps its order.

use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use prost_types::FieldMask;
use proto::pubsub::publisher_client::PublisherClient;
use proto::pubsub::subscriber_client::SubscriberClient;
use proto::pubsub::{MessageStoragePolicy, StreamingPullRequest, Topic, UpdateTopicRequest};
use serde_json::Value;
use tokio::time::timeout;
use tonic::Code;
use tonic::transport::Channel;

use crate::audit::way::Way;
use crate::cluster::Cluster;
use crate::member::Member;

const TOPIC: &str = "projects/orderly/topics/orders";
const NORTH: usize = 0;
const SOUTH: usize = 1;
const WEST: usize = 2;
const KEYS: [&str; 3] = ["red", "green", "blue"];
/// A stream hears of its end within this time.
const HEARD_WITHIN: Duration = Duration::from_secs(10);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn keys_move_to_where_their_topic_may_be_stored_before_anything_more_is_published() {
    let mut cluster = Cluster::of_regions().await;
    let nodes = cluster.members();
    create(&nodes[NORTH]).await;
    for number in 0..3 {
        publish_all(&nodes[NORTH], number).await;
    }
    for key in KEYS {
        assert_eq!(place(&nodes[NORTH], key).await, at("north", "region"));
    }

    update(
        &nodes[WEST],
        policy(&["south"], false),
        "message_storage_policy",
    )
    .await;
    // Through a node that knew where the keys were, and one that did not.
    publish_all(&nodes[NORTH], 3).await;
    publish_all(&nodes[WEST], 4).await;
    for key in KEYS {
        assert_eq!(place(&nodes[NORTH], key).await, at("south", "zone"));
    }

    let mut survives = policy(&[], false);
    survives.labels = [("orderly-survival".to_owned(), "region".to_owned())].into();
    survives.message_storage_policy = None;
    update(&nodes[SOUTH], survives.clone(), "message_storage_policy").await;
    update(&nodes[SOUTH], survives, "labels").await;
    publish_all(&nodes[SOUTH], 5).await;
    for key in KEYS {
        assert_eq!(place(&nodes[NORTH], key).await, at("south", "region"));
    }

    let received = receive(&nodes[NORTH], 6 * KEYS.len()).await;
    for key in KEYS {
        let of_key = received.iter().filter(|(of, _)| of == key);
        let texts: Vec<&str> = of_key.map(|(_, text)| text.as_str()).collect();
        let expected = [0, 1, 2, 3, 4, 5].map(|number| STANDARD.encode(number.to_string()));
        assert_eq!(texts, expected, "{key}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn streams_end_where_messages_must_not_pass_through_any_more() {
    let mut cluster = Cluster::of_regions().await;
    let nodes = cluster.members();
    create(&nodes[NORTH]).await;
    let open = async |node: &Member| {
        let mut subscriber = SubscriberClient::new(channel(node).await);
        let first = StreamingPullRequest {
            subscription: "projects/orderly/subscriptions/reader".to_owned(),
            stream_ack_deadline_seconds: 10,
            ..StreamingPullRequest::default()
        };
        let requests = futures::stream::once(async { first });
        let requests = futures::StreamExt::chain(requests, futures::stream::pending());
        let opened = subscriber.streaming_pull(requests).await;
        opened.expect("it may be pulled from").into_inner()
    };
    let mut in_north = open(&nodes[NORTH]).await;
    let mut in_south = open(&nodes[SOUTH]).await;

    update(
        &nodes[SOUTH],
        policy(&["south"], true),
        "message_storage_policy",
    )
    .await;
    let ended = async {
        loop {
            match in_north.message().await {
                Ok(Some(_)) => {}
                Ok(None) => panic!("it ended without a status"),
                Err(status) => return status,
            }
        }
    };
    let status = timeout(HEARD_WITHIN, ended).await.expect("the stream ends");
    assert_eq!(status.code(), Code::FailedPrecondition, "{status:?}");
    assert!(status.message().contains("south"), "{status:?}");
    publish(&nodes[SOUTH], "red", "still").await;
    let arrives = async {
        while let Ok(Some(response)) = in_south.message().await {
            if !response.received_messages.is_empty() {
                return;
            }
        }
        panic!("the stream in the allowed region ended");
    };
    timeout(HEARD_WITHIN, arrives).await.expect("it goes on");
}

async fn create(node: &Member) {
    run(node, &["topics", "create", "orders"]).await;
    let subscription = [
        "subscriptions",
        "create",
        "reader",
        "--topic",
        "orders",
        "--enable-message-ordering",
    ];
    run(node, &subscription).await;
}

/// The topic with a storage policy.
fn policy(regions: &[&str], enforce_in_transit: bool) -> Topic {
    Topic {
        name: TOPIC.to_owned(),
        message_storage_policy: Some(MessageStoragePolicy {
            allowed_persistence_regions: regions.iter().map(|it| (*it).to_owned()).collect(),
            enforce_in_transit,
        }),
        ..Topic::default()
    }
}

async fn update(node: &Member, topic: Topic, path: &str) {
    let request = UpdateTopicRequest {
        topic: Some(topic),
        update_mask: Some(FieldMask {
            paths: vec![path.to_owned()],
        }),
    };
    let mut publisher = PublisherClient::new(channel(node).await);
    let updated = publisher.update_topic(request).await;
    updated.expect("the topic is as the API has it");
}

async fn channel(node: &Member) -> Channel {
    Way::new(&[node.endpoint()], 0).channel().await
}

async fn publish_all(node: &Member, number: usize) {
    for key in KEYS {
        publish(node, key, &number.to_string()).await;
    }
}

async fn publish(node: &Member, key: &str, text: &str) {
    let publish = ["topics", "publish", "orders", "--message", text];
    run(node, &[&publish[..], &["--ordering-key", key]].concat()).await;
}

/// Key and data of the messages, as JSON has it, as they come for the first time.
async fn receive(node: &Member, count: usize) -> Vec<(String, String)> {
    let mut received: Vec<(String, String)> = Vec::new();
    while received.len() < count {
        let pull = [
            "subscriptions",
            "pull",
            "reader",
            "--auto-ack",
            "--limit",
            "100",
        ];
        let pulled = run(node, &pull).await;
        for pulled in pulled.as_array().expect("a list") {
            let message = &pulled["message"];
            let text = |field: &str| message[field].as_str().unwrap_or_default().to_owned();
            let found = (text("orderingKey"), text("data"));
            if !received.contains(&found) {
                received.push(found);
            }
        }
    }
    received
}

/// Runs a command that must succeed.
async fn run(node: &Member, arguments: &[&str]) -> Value {
    let said = node.operate(arguments).await;
    said.unwrap_or_else(|why| panic!("{arguments:?}: {why}"))
}

/// Region and survival goal of the shard that has a key.
async fn place(node: &Member, key: &str) -> (String, String) {
    let found = run(node, &["keys", "where", "orders", key]).await;
    let shards = run(node, &["shards", "list"]).await;
    let mut shards = shards.as_array().expect("a list").iter();
    let shard = shards.find(|shard| shard["name"] == found["shard"]);
    let shard = shard.expect("it is listed");
    let text = |field: &str| shard[field].as_str().expect("a name").to_owned();
    (text("home"), text("goal"))
}

fn at(home: &str, goal: &str) -> (String, String) {
    (home.to_owned(), goal.to_owned())
}

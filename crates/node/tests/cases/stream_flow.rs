//! What a client may have outstanding on its stream.

use std::time::Duration;

use proto::pubsub::StreamingPullRequest;

use crate::client::{Client, ack_ids, message, ordered, texts};
use crate::node::Node;

/// What must not come would come within this time.
const SILENCE: Duration = Duration::from_secs(1);

#[tokio::test]
async fn no_more_messages_than_the_client_asked_for() {
    let node = Node::start();
    let client = Client::new(&node);
    let topic = client.topic("orders").await;
    let subscription = client
        .subscription("shipping", &topic, Default::default())
        .await;
    // One by one, so that they are spread over the shards.
    for number in 0..20 {
        client.publish(&topic, "", &[&number.to_string()]).await;
    }
    let first = StreamingPullRequest {
        max_outstanding_messages: 5,
        ..StreamingPullRequest::default()
    };
    let mut stream = client.stream(&subscription, first).await;
    let five = stream.receive(5).await;
    stream.is_silent_for(SILENCE).await;
    client.acknowledge(&subscription, &five[..2]).await;
    stream.receive(2).await;
    stream.is_silent_for(SILENCE).await;
    // A nack frees one place as well, and expiry.
    client.nack(&subscription, &five[2..3]).await;
    stream.receive(1).await;
    client.expire(&subscription, &five[3..4]).await;
    stream.receive(1).await;
    stream.is_silent_for(SILENCE).await;
}

#[tokio::test]
async fn the_message_that_crosses_the_byte_limit_is_the_last() {
    let node = Node::start();
    let client = Client::new(&node);
    let topic = client.topic("films").await;
    let subscription = client
        .subscription("viewers", &topic, Default::default())
        .await;
    let film = message("", &"x".repeat(400_000));
    for _ in 0..8 {
        let published = client
            .try_publish(&topic, std::slice::from_ref(&film))
            .await;
        published.expect("it is published");
    }
    let first = StreamingPullRequest {
        max_outstanding_bytes: 1_000_000,
        ..StreamingPullRequest::default()
    };
    let mut stream = client.stream(&subscription, first).await;
    let three = stream.receive(3).await;
    stream.is_silent_for(SILENCE).await;
    client.acknowledge(&subscription, &three[..1]).await;
    stream.receive(1).await;
    stream.is_silent_for(SILENCE).await;
}

#[tokio::test]
async fn a_nack_on_the_stream_brings_the_message_again() {
    let node = Node::start();
    let client = Client::new(&node);
    let topic = client.topic("orders").await;
    let subscription = client
        .subscription("shipping", &topic, Default::default())
        .await;
    client.publish(&topic, "", &["paid"]).await;
    let mut stream = client
        .stream(&subscription, StreamingPullRequest::default())
        .await;
    let received = stream.receive(1).await;
    stream.send(StreamingPullRequest {
        modify_deadline_ack_ids: ack_ids(&received),
        modify_deadline_seconds: vec![0],
        ..StreamingPullRequest::default()
    });
    let again = stream.receive(1).await;
    assert_eq!(texts(&again), ["paid"]);
}

#[tokio::test]
async fn an_ack_that_is_late_does_not_end_the_stream() {
    let node = Node::start();
    let client = Client::new(&node);
    let topic = client.topic("orders").await;
    let subscription = client
        .subscription("shipping", &topic, Default::default())
        .await;
    client.publish(&topic, "", &["paid"]).await;
    let mut stream = client
        .stream(&subscription, StreamingPullRequest::default())
        .await;
    let received = stream.receive(1).await;
    client.expire(&subscription, &received).await;
    stream.send(StreamingPullRequest {
        ack_ids: ack_ids(&received),
        ..StreamingPullRequest::default()
    });
    client.publish(&topic, "", &["packed"]).await;
    // The first one has perhaps been sent again before.
    while texts(&stream.receive(1).await) != ["packed"] {}
}

#[tokio::test]
async fn a_stalled_consumer_slows_no_other_key() {
    const KEYS: usize = 10;
    const STALLED: usize = 500;
    let node = Node::start();
    let client = Client::new(&node);
    let topic = client.topic("orders").await;
    let subscription = client.subscription("shipping", &topic, ordered()).await;
    let publish = async |key: &str, numbers: std::ops::Range<usize>| {
        let texts: Vec<_> = numbers.map(|number| number.to_string()).collect();
        let texts: Vec<_> = texts.iter().map(String::as_str).collect();
        client.publish(&topic, key, &texts).await;
    };
    publish("stalled", 0..STALLED).await;
    let limit = |max_outstanding_messages| StreamingPullRequest {
        max_outstanding_messages,
        ..StreamingPullRequest::default()
    };
    let mut stalled = client.stream(&subscription, limit(STALLED as i64)).await;
    let held = stalled.receive(STALLED).await;

    let mut other = client.stream(&subscription, limit(1)).await;
    for key in 0..KEYS {
        publish(&format!("key-{key}"), 0..50).await;
    }
    publish("stalled", STALLED..STALLED + 10).await;
    let mut order = crate::order::Order::default();
    for _ in 0..KEYS * 50 {
        let one = other.receive(1).await;
        order.receive(&one);
        client.acknowledge(&subscription, &one).await;
    }
    other.is_silent_for(SILENCE).await;

    // The stalled one goes on: the rest of its key follows, to either of them.
    order.receive(&held);
    client.acknowledge(&subscription, &held).await;
    drop(stalled);
    for _ in 0..10 {
        let one = other.receive(1).await;
        order.receive(&one);
        client.acknowledge(&subscription, &one).await;
    }
    assert_eq!(order.count("stalled"), STALLED + 10);
}

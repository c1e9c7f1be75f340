//! Responses stay within what clients accept.

use prost::Message;
use proto::pubsub::{PubsubMessage, PullRequest, StreamingPullRequest};

use crate::client::{Client, message};
use crate::node::Node;
use crate::stream;

/// What a response weighs at most, unless one message alone is larger.
const RESPONSE_BYTES_MAX: usize = 3_600_000;

fn of_size(key: &str, bytes: usize) -> PubsubMessage {
    message(key, &"x".repeat(bytes))
}

#[tokio::test]
async fn a_pull_of_twenty_megabytes_comes_in_parts() {
    let node = Node::start();
    let client = Client::new(&node);
    let topic = client.topic("films").await;
    let subscription = client
        .subscription("viewers", &topic, Default::default())
        .await;
    for _ in 0..4 {
        let published = client
            .try_publish(&topic, &vec![of_size("", 1_000_000); 5])
            .await;
        published.expect("it is published");
    }
    // What does not fit into one response must come in the next ones, and at once.
    let mut count = 0;
    while count < 20 {
        let pulled = client.pull(&subscription, 20).await;
        let bytes: usize = pulled.iter().map(Message::encoded_len).sum();
        assert!(bytes <= RESPONSE_BYTES_MAX, "{bytes}");
        count += pulled.len();
        client.acknowledge(&subscription, &pulled).await;
    }
    assert_eq!(count, 20);
}

#[tokio::test]
async fn a_message_larger_than_that_travels_alone() {
    const LARGE: usize = 9_900_000;
    let node = Node::start();
    let client = Client::new(&node).with_large_responses();
    let topic = client.topic("films").await;
    let subscription = client
        .subscription("viewers", &topic, Default::default())
        .await;
    // All of one key, so that they are in one place.
    for bytes in [10, LARGE, 10] {
        let published = client.try_publish(&topic, &[of_size("key", bytes)]).await;
        published.expect("it is published");
    }
    let mut sizes = Vec::new();
    while sizes.iter().map(Vec::len).sum::<usize>() < 3 {
        let request = PullRequest {
            subscription: subscription.clone(),
            max_messages: 10,
            ..PullRequest::default()
        };
        let pulled = client.subscriber.clone().pull(request).await;
        let pulled = pulled.expect("a pull is answered").into_inner();
        let received: Vec<proto::pubsub::ReceivedMessage> =
            proto::wire::decode_all(&pulled.received_messages).unwrap();
        client.acknowledge(&subscription, &received).await;
        let data = |one: &proto::pubsub::ReceivedMessage| one.message.clone().unwrap().data.len();
        sizes.push(received.iter().map(data).collect());
    }
    assert!(sizes.contains(&vec![LARGE]), "{sizes:?}");
}

#[tokio::test]
async fn a_stream_gets_all_of_it_in_parts() {
    let node = Node::start();
    let client = Client::new(&node);
    let topic = client.topic("films").await;
    let subscription = client
        .subscription("viewers", &topic, Default::default())
        .await;
    for _ in 0..2 {
        let published = client
            .try_publish(&topic, &vec![of_size("", 1_000_000); 5])
            .await;
        published.expect("it is published");
    }
    let mut open = client
        .stream(&subscription, StreamingPullRequest::default())
        .await;
    let mut count = 0;
    while count < 10 {
        // The client refuses a response that is too large.
        let response = open.response_within(crate::client::SOON).await;
        count += stream::messages(&response).len();
    }
}

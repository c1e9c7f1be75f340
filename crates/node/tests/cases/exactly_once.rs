//! Exactly-once: which acks count, and in which words clients hear that one does not.

use std::collections::HashMap;

use tonic::{Code, Status};
use tonic_types::StatusExt;

use crate::client::{Client, ack_ids, exactly_once, texts};
use crate::node::Node;

const INVALID: &str = "PERMANENT_FAILURE_INVALID_ACK_ID";
const UNORDERED: &str = "TRANSIENT_FAILURE_UNORDERED_ACK_ID";

/// The status carries exactly these ids, each with its failure.
fn assert_failed(status: &Status, ids: &[String], failure: &str) {
    let details = status.get_error_details();
    let info = details.error_info().expect("an ErrorInfo");
    assert_eq!(info.reason, "EXACTLY_ONCE_ACKID_FAILURE");
    assert_eq!(info.domain, "pubsub.googleapis.com");
    let expected: HashMap<_, _> = ids
        .iter()
        .map(|id| (id.clone(), failure.to_owned()))
        .collect();
    assert_eq!(info.metadata, expected);
}

fn assert_invalid(result: Result<(), Status>, ids: &[String]) {
    let status = result.expect_err("an ack that does not count is told");
    assert_eq!(status.code(), Code::InvalidArgument);
    let text = "Some acknowledgement ids in the request were invalid. This could be because the \
                acknowledgement ids have expired or the acknowledgement ids were malformed.";
    assert_eq!(status.message(), text);
    assert_failed(&status, ids, INVALID);
}

#[tokio::test]
async fn only_the_latest_delivery_can_be_acknowledged() {
    let node = Node::start();
    let client = Client::new(&node);
    let topic = client.topic("orders").await;
    let subscription = client
        .subscription("shipping", &topic, exactly_once())
        .await;
    client.publish(&topic, "", &["paid"]).await;
    let first = client.pull(&subscription, 1).await;
    client.expire(&subscription, &first).await;
    let expired = ack_ids(&first);
    assert_invalid(
        client.try_acknowledge(&subscription, expired.clone()).await,
        &expired,
    );
    assert_invalid(
        client.try_modify(&subscription, expired.clone(), 30).await,
        &expired,
    );

    let second = client.pull(&subscription, 1).await;
    assert_eq!(texts(&second), ["paid"]);
    assert_ne!(ack_ids(&second), expired);
    assert_invalid(
        client.try_acknowledge(&subscription, expired.clone()).await,
        &expired,
    );
    // An extension keeps the id, which is good until it is used, and for a repeat of that.
    let extended = client.try_modify(&subscription, ack_ids(&second), 30).await;
    extended.expect("the lease is alive");
    client.acknowledge(&subscription, &second).await;
    client.acknowledge(&subscription, &second).await;
    client.pull_nothing(&subscription).await;
}

#[tokio::test]
async fn a_stale_id_does_not_spoil_the_good_one() {
    let node = Node::start();
    let client = Client::new(&node);
    let topic = client.topic("orders").await;
    let subscription = client
        .subscription("shipping", &topic, exactly_once())
        .await;
    client.publish(&topic, "", &["good", "stale"]).await;
    let received = client.pull_all(&subscription, 2).await;
    let (good, stale) = received.split_at(1);
    client.nack(&subscription, stale).await;
    let again = client.pull(&subscription, 1).await;
    assert_eq!(texts(&again), texts(stale));

    let mixed = client
        .try_acknowledge(&subscription, ack_ids(&received))
        .await;
    assert_invalid(mixed, &ack_ids(stale));
    // It would come again, were it not acknowledged.
    assert_invalid(
        client.try_modify(&subscription, ack_ids(good), 0).await,
        &ack_ids(good),
    );
    client.acknowledge(&subscription, &again).await;
    client.pull_nothing(&subscription).await;
}

#[tokio::test]
async fn acks_of_a_key_are_taken_in_order() {
    let node = Node::start();
    let client = Client::new(&node);
    let topic = client.topic("orders").await;
    let both = proto::pubsub::Subscription {
        enable_message_ordering: true,
        ..exactly_once()
    };
    let subscription = client.subscription("shipping", &topic, both).await;
    client.publish(&topic, "key", &["1", "2", "3", "4"]).await;
    let received = client.pull_all(&subscription, 4).await;
    assert_eq!(texts(&received), ["1", "2", "3", "4"]);
    let second = ack_ids(&received[1..2]);
    let early = client.try_acknowledge(&subscription, second.clone()).await;
    let early = early.expect_err("the first one is not acknowledged yet");
    assert_failed(&early, &second, UNORDERED);
    client.acknowledge(&subscription, &received[..1]).await;
    client.acknowledge(&subscription, &received[1..2]).await;
    // In one request they may stand in any order of theirs.
    client.acknowledge(&subscription, &received[2..]).await;
    client.pull_nothing(&subscription).await;
}

#[tokio::test]
async fn at_least_once_says_nothing_of_late_acks() {
    let node = Node::start();
    let client = Client::new(&node);
    let topic = client.topic("orders").await;
    let subscription = client
        .subscription("shipping", &topic, Default::default())
        .await;
    client.publish(&topic, "", &["paid"]).await;
    let received = client.pull(&subscription, 1).await;
    client.expire(&subscription, &received).await;
    client.acknowledge(&subscription, &received).await;
    client.pull_nothing(&subscription).await;
}

#[tokio::test]
async fn leases_outlive_the_node() {
    let mut node = Node::start();
    let client = Client::new(&node);
    let topic = client.topic("orders").await;
    let subscription = client
        .subscription("shipping", &topic, exactly_once())
        .await;
    client.publish(&topic, "", &["paid"]).await;
    let received = client.pull(&subscription, 1).await;
    node.kill();
    node.restart();
    // The deadline is a minute away: only what is published now comes.
    let fresh = Client::new(&node);
    fresh.publish(&topic, "", &["packed"]).await;
    let next = fresh.pull(&subscription, 2).await;
    assert_eq!(texts(&next), ["packed"]);
    fresh.pull_nothing(&subscription).await;
    fresh.acknowledge(&subscription, &received).await;
}

/// An ack id of another subscription.
async fn foreign_id(client: &Client, topic: &str) -> String {
    let rest = proto::pubsub::Subscription::default();
    let other = client.subscription("billing", topic, rest).await;
    client.publish(topic, "", &["for both"]).await;
    ack_ids(&client.pull(&other, 1).await).remove(0)
}

#[tokio::test]
async fn ids_that_are_none_do_not_spoil_the_good_one() {
    let node = Node::start();
    let client = Client::new(&node);
    let topic = client.topic("orders").await;
    let subscription = client
        .subscription("shipping", &topic, exactly_once())
        .await;
    let wrong = vec!["no ack id".to_owned(), foreign_id(&client, &topic).await];
    let received = client.pull(&subscription, 1).await;
    let mixed = [wrong.clone(), ack_ids(&received)].concat();
    let extended = client.try_modify(&subscription, mixed.clone(), 600).await;
    assert_invalid(extended, &wrong);
    assert_invalid(client.try_acknowledge(&subscription, mixed).await, &wrong);
    // It would come again, were it not acknowledged.
    let good = ack_ids(&received);
    assert_invalid(
        client.try_modify(&subscription, good.clone(), 0).await,
        &good,
    );
    client.pull_nothing(&subscription).await;
}

#[tokio::test]
async fn at_least_once_an_id_that_is_none_is_refused_alone() {
    let node = Node::start();
    let client = Client::new(&node);
    let topic = client.topic("orders").await;
    let rest = proto::pubsub::Subscription::default();
    let subscription = client.subscription("shipping", &topic, rest).await;
    for wrong in ["no ack id".to_owned(), foreign_id(&client, &topic).await] {
        let received = client.pull(&subscription, 1).await;
        let mixed = [vec![wrong], ack_ids(&received)].concat();
        let refused = client.try_acknowledge(&subscription, mixed).await;
        let refused = refused.expect_err("an id that is none is told");
        assert_eq!(refused.code(), Code::InvalidArgument);
        client.nack(&subscription, &received).await;
        client.pull_nothing(&subscription).await;
        client.publish(&topic, "", &["next"]).await;
    }
}

/// The ids that an answer lists as failed for good.
fn listed(status: &Status) -> Vec<String> {
    let details = status.get_error_details();
    let info = details.error_info().expect("an ErrorInfo");
    assert!(info.metadata.values().all(|failure| failure == INVALID));
    info.metadata.keys().cloned().collect()
}

#[tokio::test]
async fn failed_ids_that_do_not_fit_into_one_answer_are_told_in_several() {
    const STALE: usize = 100;
    let node = Node::start();
    let client = Client::new(&node);
    let topic = client.topic("orders").await;
    let subscription = client
        .subscription("shipping", &topic, exactly_once())
        .await;
    client.publish(&topic, "", &["paid"; STALE]).await;
    let stale = client.pull_all(&subscription, STALE).await;
    client.nack(&subscription, &stale).await;
    let good = client.pull_all(&subscription, STALE).await;
    let mut ids = [ack_ids(&stale), ack_ids(&good)].concat();
    let mut answers = 0;
    let mut failed = Vec::new();
    // A client that repeats what is not listed, as Google's do after ABORTED.
    loop {
        let acknowledged = client.try_acknowledge(&subscription, ids.clone()).await;
        let status = acknowledged.expect_err("some ids are stale");
        let told = listed(&status);
        assert!(!told.is_empty(), "{status:?}");
        ids.retain(|id| !told.contains(id));
        failed.extend(told);
        answers += 1;
        if status.code() != Code::Aborted {
            assert_eq!(status.code(), Code::InvalidArgument);
            break;
        }
    }
    assert!(
        answers > 1,
        "a client of which nothing is known takes 8 KiB"
    );
    assert_eq!(ids, ack_ids(&good));
    assert_eq!(failed.len(), STALE);
    client.pull_nothing(&subscription).await;
}

#[tokio::test]
async fn a_client_that_takes_more_is_told_all_failed_ids_at_once() {
    const STALE: usize = 1_000;
    let node = Node::start();
    let client = Client::new(&node).with_large_trailers(&node);
    let topic = client.topic("orders").await;
    let subscription = client
        .subscription("shipping", &topic, exactly_once())
        .await;
    client.publish(&topic, "", &["paid"; STALE]).await;
    let stale = client.pull_all(&subscription, STALE).await;
    client.nack(&subscription, &stale).await;
    let mut request = tonic::Request::new(proto::pubsub::AcknowledgeRequest {
        subscription,
        ack_ids: ack_ids(&stale),
    });
    let client_name = "gl-python/3.11 grpc/1.70 gapic/2.30"
        .parse()
        .expect("ascii");
    request
        .metadata_mut()
        .insert("x-goog-api-client", client_name);
    let status = client.subscriber.clone().acknowledge(request).await;
    let status = status.expect_err("all ids are stale");
    assert_eq!(status.code(), Code::InvalidArgument);
    assert_eq!(listed(&status).len(), STALE);
}

//! How a StreamingPull begins, what it says of itself, and how it ends.

use std::time::Duration;

use prost_types::FieldMask;
use proto::pubsub::{
    DeleteSubscriptionRequest, StreamingPullRequest, Subscription, UpdateSubscriptionRequest,
};
use tokio::time::{Instant, timeout};
use tonic::Code;

use crate::client::{Client, SOON, ack_ids, exactly_once, ordered, texts};
use crate::node::Node;
use crate::stream::{Stream, messages};

/// How long a server may take that has all it needs to end a stream.
const END: Duration = Duration::from_secs(1);
/// A response that must not come would come within this time.
const SILENCE: Duration = Duration::from_secs(2);

fn heartbeat() -> StreamingPullRequest {
    StreamingPullRequest::default()
}

/// A node with a topic and a subscription of it.
async fn start(rest: Subscription) -> (Node, Client, String, String) {
    let node = Node::start();
    let client = Client::new(&node);
    let topic = client.topic("orders").await;
    let subscription = client.subscription("shipping", &topic, rest).await;
    (node, client, topic, subscription)
}

#[tokio::test]
async fn a_wrong_first_request_is_told_so() {
    let (_node, client, _, subscription) = start(Subscription::default()).await;
    let first = |subscription: &str, stream_ack_deadline_seconds| StreamingPullRequest {
        subscription: subscription.to_owned(),
        stream_ack_deadline_seconds,
        ..StreamingPullRequest::default()
    };
    let unknown = "projects/cases/subscriptions/unknown";
    for (request, code) in [
        (first("", 60), Code::InvalidArgument),
        (first(unknown, 60), Code::NotFound),
        (first(&subscription, 0), Code::InvalidArgument),
        (first(&subscription, 9), Code::InvalidArgument),
        (first(&subscription, 601), Code::InvalidArgument),
    ] {
        let ended = match Stream::open_raw(&client, request.clone()).await {
            Ok(mut stream) => stream.end_within(SOON).await,
            Err(status) => Err(status),
        };
        assert_eq!(ended.unwrap_err().code(), code, "{request:?}");
    }
}

#[tokio::test]
async fn a_wrong_later_request_ends_the_stream() {
    let (_node, client, _, subscription) = start(Subscription::default()).await;
    let wrong = [
        StreamingPullRequest {
            max_outstanding_messages: 5,
            ..heartbeat()
        },
        StreamingPullRequest {
            protocol_version: 1,
            ..heartbeat()
        },
        StreamingPullRequest {
            subscription: subscription.clone(),
            ..heartbeat()
        },
        StreamingPullRequest {
            stream_ack_deadline_seconds: 9,
            ..heartbeat()
        },
        StreamingPullRequest {
            modify_deadline_seconds: vec![10],
            ..heartbeat()
        },
        StreamingPullRequest {
            ack_ids: vec!["no ack id of ours".to_owned()],
            ..heartbeat()
        },
    ];
    for request in wrong {
        let mut stream = client.stream(&subscription, heartbeat()).await;
        stream.send(request.clone());
        let ended = stream.end_within(SOON).await.unwrap_err();
        assert_eq!(ended.code(), Code::InvalidArgument, "{request:?}");
    }
}

#[tokio::test]
async fn a_negative_deadline_ends_the_stream() {
    let (_node, client, topic, subscription) = start(Subscription::default()).await;
    client.publish(&topic, "", &["paid"]).await;
    let mut stream = client.stream(&subscription, heartbeat()).await;
    let received = stream.receive(1).await;
    stream.send(StreamingPullRequest {
        modify_deadline_ack_ids: ack_ids(&received),
        modify_deadline_seconds: vec![-1],
        ..heartbeat()
    });
    let ended = stream.end_within(SOON).await.unwrap_err();
    assert_eq!(ended.code(), Code::InvalidArgument);
}

#[tokio::test]
async fn heartbeats_are_answered_to_clients_that_expect_it() {
    let (_node, client, _, subscription) = start(Subscription::default()).await;
    let version_1 = StreamingPullRequest {
        protocol_version: 1,
        ..heartbeat()
    };
    let mut stream = client.stream(&subscription, version_1).await;
    for _ in 0..3 {
        stream.send(heartbeat());
        let answer = stream.response_within(SOON).await;
        assert_eq!(messages(&answer), []);
        assert!(answer.subscription_properties.is_some());
    }

    let mut stream = client.stream(&subscription, heartbeat()).await;
    stream.send(heartbeat());
    stream.is_silent_for(SILENCE).await;
}

#[tokio::test]
async fn every_response_has_the_properties() {
    let both = Subscription {
        enable_exactly_once_delivery: true,
        ..ordered()
    };
    let (_node, client, topic, subscription) = start(both).await;
    let first = StreamingPullRequest {
        protocol_version: 1,
        ..heartbeat()
    };
    let mut stream = client.stream(&subscription, first).await;
    client.publish(&topic, "key", &["1", "2"]).await;
    let delivered = stream.response_within(SOON).await;
    let received = messages(&delivered);
    assert_eq!(texts(&received)[0], "1");
    stream.send(heartbeat());
    let answered = stream.response_within(SOON).await;
    stream.send(StreamingPullRequest {
        ack_ids: ack_ids(&received),
        ..heartbeat()
    });
    let confirmed = stream.response_within(SOON).await;
    for response in [delivered, answered, confirmed] {
        let properties = response.subscription_properties.expect("always");
        assert!(properties.exactly_once_delivery_enabled);
        assert!(properties.message_ordering_enabled);
    }
}

#[tokio::test]
async fn an_open_stream_hears_of_exactly_once() {
    let (_node, client, _, subscription) = start(Subscription::default()).await;
    let first = StreamingPullRequest {
        protocol_version: 1,
        ..heartbeat()
    };
    let mut stream = client.stream(&subscription, first).await;
    for enabled in [true, false] {
        let request = UpdateSubscriptionRequest {
            subscription: Some(Subscription {
                name: subscription.clone(),
                enable_exactly_once_delivery: enabled,
                ..Subscription::default()
            }),
            update_mask: Some(FieldMask {
                paths: vec!["enable_exactly_once_delivery".to_owned()],
            }),
        };
        let updated = client.subscriber.clone().update_subscription(request).await;
        updated.expect("it can be changed");
        let deadline = Instant::now() + SOON;
        let mut seen = !enabled;
        while seen != enabled {
            assert!(Instant::now() < deadline, "the stream never says {enabled}");
            stream.send(heartbeat());
            let answer = stream.response_within(SOON).await;
            let properties = answer.subscription_properties.expect("always");
            seen = properties.exactly_once_delivery_enabled;
        }
    }
}

#[tokio::test]
async fn a_client_that_is_done_hears_ok() {
    let (_node, client, topic, subscription) = start(Subscription::default()).await;
    let stream = client.stream(&subscription, heartbeat()).await;
    timeout(END, stream.rest()).await.expect("it ends soon");

    // What was asked just before is done nevertheless.
    client.publish(&topic, "", &["paid"]).await;
    let mut stream = client.stream(&subscription, heartbeat()).await;
    let received = stream.receive(1).await;
    stream.send(StreamingPullRequest {
        ack_ids: ack_ids(&received),
        ..heartbeat()
    });
    timeout(END, stream.rest()).await.expect("it ends soon");
    client.pull_nothing(&subscription).await;
}

#[tokio::test]
async fn a_deleted_subscription_ends_its_streams() {
    let (_node, client, topic, subscription) = start(Subscription::default()).await;
    client.publish(&topic, "", &["before"]).await;
    let mut stream = client.stream(&subscription, heartbeat()).await;
    let received = stream.receive(1).await;
    let request = DeleteSubscriptionRequest {
        subscription: subscription.clone(),
    };
    let deleted = client.subscriber.clone().delete_subscription(request).await;
    deleted.expect("it is deleted");
    let ended = stream.end_within(SOON).await.unwrap_err();
    assert_eq!(ended.code(), Code::NotFound);

    // Another subscription of the same name knows nothing of it.
    let again = client
        .subscription("shipping", &topic, Subscription::default())
        .await;
    client.publish(&topic, "", &["after"]).await;
    let refused = client.try_acknowledge(&again, ack_ids(&received)).await;
    assert_eq!(refused.unwrap_err().code(), Code::InvalidArgument);
    assert_eq!(texts(&client.pull_all(&again, 1).await), ["after"]);
}

#[tokio::test]
async fn a_node_that_shuts_down_tells_clients_to_reconnect() {
    let (mut node, client, topic, subscription) = start(Subscription::default()).await;
    client.publish(&topic, "", &["paid"]).await;
    let mut stream = client.stream(&subscription, heartbeat()).await;
    let received = stream.receive(1).await;
    let down = tokio::task::spawn_blocking(move || {
        let status = node.terminate();
        (node, status)
    });
    let ended = stream.end_within(SOON).await.unwrap_err();
    assert_eq!(ended.code(), Code::Unavailable);
    assert!(!ended.message().contains("shutdownNow"), "{ended:?}");

    let (mut node, status) = down.await.expect("it ends");
    assert!(status.success());
    node.restart();
    // The ids of the old stream are as good as before.
    client.acknowledge(&subscription, &received).await;
    client.pull_nothing(&subscription).await;
}

#[tokio::test]
async fn acks_are_confirmed_on_exactly_once_streams_only() {
    let (_node, client, topic, subscription) = start(exactly_once()).await;
    client.publish(&topic, "", &["good", "stale"]).await;
    let received = client.pull_all(&subscription, 2).await;
    client.nack(&subscription, &received[1..]).await;
    let mut stream = client.stream(&subscription, heartbeat()).await;
    let again = stream.receive(1).await;
    stream.send(StreamingPullRequest {
        ack_ids: ack_ids(&received),
        ..heartbeat()
    });
    let answer = stream.response_within(SOON).await;
    let confirmed = answer.acknowledge_confirmation.expect("exactly-once");
    assert_eq!(confirmed.ack_ids, ack_ids(&received[..1]));
    assert_eq!(confirmed.invalid_ack_ids, ack_ids(&received[1..]));
    stream.send(StreamingPullRequest {
        modify_deadline_ack_ids: ack_ids(&again),
        modify_deadline_seconds: vec![30],
        ..heartbeat()
    });
    let answer = stream.response_within(SOON).await;
    let confirmed = answer.modify_ack_deadline_confirmation;
    assert_eq!(confirmed.expect("exactly-once").ack_ids, ack_ids(&again));

    let plain = client
        .subscription("plain", &topic, Subscription::default())
        .await;
    client.publish(&topic, "", &["good"]).await;
    let mut stream = client.stream(&plain, heartbeat()).await;
    let received = stream.receive(1).await;
    stream.send(StreamingPullRequest {
        ack_ids: ack_ids(&received),
        ..heartbeat()
    });
    stream.is_silent_for(SILENCE).await;
}

/// A stream's good id beside one that `wrong` makes of a foreign one.
async fn send_mixed(
    rest: Subscription,
    wrong: impl Fn(&str) -> String,
) -> (Node, Client, String, Stream, Vec<String>) {
    let (node, client, topic, subscription) = start(rest).await;
    let default = Subscription::default();
    let other = client.subscription("billing", &topic, default).await;
    client.publish(&topic, "", &["paid"]).await;
    let foreign = ack_ids(&client.pull(&other, 1).await).remove(0);
    let mut stream = client.stream(&subscription, heartbeat()).await;
    let good = ack_ids(&stream.receive(1).await).remove(0);
    let ids = vec![wrong(&foreign), good];
    stream.send(StreamingPullRequest {
        ack_ids: ids.clone(),
        ..heartbeat()
    });
    (node, client, subscription, stream, ids)
}

#[tokio::test]
async fn a_foreign_id_on_a_stream_is_invalid_and_the_good_one_counts() {
    let (_node, _, _, mut stream, ids) = send_mixed(exactly_once(), str::to_owned).await;
    let answer = stream.response_within(SOON).await;
    let confirmation = answer.acknowledge_confirmation.expect("exactly-once");
    assert_eq!(confirmation.invalid_ack_ids, ids[..1]);
    assert_eq!(confirmation.ack_ids, ids[1..]);
    assert!(confirmation.temporary_failed_ack_ids.is_empty());
}

#[tokio::test]
async fn at_least_once_a_foreign_id_on_a_stream_costs_nothing() {
    let rest = Subscription::default();
    let (_node, client, subscription, mut stream, ids) = send_mixed(rest, str::to_owned).await;
    stream.is_silent_for(SILENCE).await;
    let given_back = client.try_modify(&subscription, ids[1..].to_vec(), 0).await;
    given_back.expect("at least once, an old id is no failure");
    stream.is_silent_for(SILENCE).await;
}

#[tokio::test]
async fn an_id_that_is_none_ends_the_stream_after_the_good_one_counts() {
    let rest = Subscription::default();
    let broken = |foreign: &str| foreign.to_uppercase();
    let (_node, client, subscription, mut stream, ids) = send_mixed(rest, broken).await;
    let ended = stream.end_within(SOON).await.unwrap_err();
    assert_eq!(ended.code(), Code::InvalidArgument);
    let given_back = client.try_modify(&subscription, ids[1..].to_vec(), 0).await;
    given_back.expect("at least once, an old id is no failure");
    client.pull_nothing(&subscription).await;
}

//! A leader is cut off from all others, and goes on. What runs out meanwhile it must not send again:
//! others may lead by then, and may have been told that it is done.

use std::time::Duration;

use proto::pubsub::StreamingPullRequest;
use proto::pubsub::subscriber_client::SubscriberClient;
use serde_json::Value;
use tokio::time::{Instant, timeout, timeout_at};

use crate::audit::way::Way;
use crate::cluster::Cluster;
use crate::member::Member;

/// The shortest that the API takes.
const ACK_DEADLINE: Duration = Duration::from_secs(10);
/// By then a leader would have sent again what has run out.
const AFTER_IT: Duration = Duration::from_secs(3);
const SOON: Duration = Duration::from_secs(20);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_leader_that_hears_nobody_sends_nothing_again() {
    let mut cluster = Cluster::of_one_region(3).await;
    let nodes = cluster.members();
    run(&nodes[0], &["topics", "create", "orders"]).await;
    let create = ["subscriptions", "create", "reader", "--topic", "orders"];
    run(&nodes[0], &create).await;
    let publish = ["topics", "publish", "orders", "--message", "text"];
    run(
        &nodes[0],
        &[&publish[..], &["--ordering-key", "key"]].concat(),
    )
    .await;
    let found = run(&nodes[0], &["keys", "where", "orders", "key"]).await;
    let leads = |node: &&Member| found["leader"] == node.name();
    let leader = nodes.iter().find(leads).expect("somebody leads");
    let others: Vec<&Member> = nodes.iter().filter(|node| !leads(node)).collect();

    let channel = Way::new(&[leader.endpoint()], 0).channel().await;
    let mut subscriber = SubscriberClient::new(channel);
    let first = StreamingPullRequest {
        subscription: "projects/orderly/subscriptions/reader".to_owned(),
        stream_ack_deadline_seconds: ACK_DEADLINE.as_secs() as i32,
        ..StreamingPullRequest::default()
    };
    let requests = futures::stream::once(async { first });
    let requests = futures::StreamExt::chain(requests, futures::stream::pending());
    let opened = subscriber.streaming_pull(requests).await;
    let mut stream = opened.expect("it may be pulled from").into_inner();
    let mut delivered = async || {
        while let Some(response) = stream.message().await.expect("the stream goes on") {
            if !response.received_messages.is_empty() {
                return;
            }
        }
        panic!("the stream ended");
    };
    timeout(SOON, delivered()).await.expect("it is delivered");
    let runs_out = Instant::now() + ACK_DEADLINE;

    others.iter().for_each(|node| node.pause());
    let again = timeout_at(runs_out + AFTER_IT, delivered()).await;
    others.iter().for_each(|node| node.resume());
    assert!(
        again.is_err(),
        "it was sent again by a leader that may be one of the past"
    );
    timeout(SOON, delivered())
        .await
        .expect("it is sent again by one that leads");
}

/// Runs a command that must succeed.
async fn run(node: &Member, arguments: &[&str]) -> Value {
    let said = node.operate(arguments).await;
    said.unwrap_or_else(|why| panic!("{arguments:?}: {why}"))
}

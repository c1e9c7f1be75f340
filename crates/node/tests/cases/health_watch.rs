//! Who watches the health of a node hears of its end in time, and does not hold it up.

use std::time::{Duration, Instant};

use tokio::time::timeout;
use tonic::transport::Endpoint;
use tonic_health::ServingStatus;
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_client::HealthClient;

use crate::node::Node;

/// A node cuts off calls that are still open after ten seconds. Nobody shall wait for that.
const CUT_OFF: Duration = Duration::from_secs(9);
/// A node looks at itself twice meanwhile.
const STILL: Duration = Duration::from_millis(1_200);

#[tokio::test]
async fn a_watcher_hears_that_the_node_goes() {
    let mut node = Node::start();
    let endpoint = Endpoint::from_shared(format!("http://{}", node.endpoint()));
    let channel = endpoint.expect("an address").connect().await;
    let mut health = HealthClient::new(channel.expect("it listens"));
    let watched = health.watch(HealthCheckRequest::default()).await;
    let mut watched = watched.expect("it can be watched").into_inner();
    let mut next = async || {
        let answer = watched.message().await.expect("the watch ends in order");
        answer.map(|answer| answer.status)
    };
    assert_eq!(next().await, Some(ServingStatus::Serving as i32));

    let repeated = timeout(STILL, next()).await;
    assert!(repeated.is_err(), "nothing has changed: {repeated:?}");

    let began = Instant::now();
    let ended = tokio::task::spawn_blocking(move || node.terminate());
    assert_eq!(next().await, Some(ServingStatus::NotServing as i32));
    assert_eq!(next().await, None);
    assert!(ended.await.expect("it ends").success());
    assert!(began.elapsed() < CUT_OFF, "{:?}", began.elapsed());
}

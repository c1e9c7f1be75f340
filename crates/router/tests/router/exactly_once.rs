//! Exactly-once streams, and the leaders that they outlive.

use std::time::Duration;

use model::limits::ENDED_SESSION_RELEASE;

use crate::cluster::{cluster, shard, soon};
use crate::reader::Reader;

#[tokio::test]
async fn a_stream_keeps_what_it_has_when_leaders_move() {
    let nodes = cluster(3).await;
    for number in [1, 2, 3] {
        nodes[0].place(shard(number), &[1, 2]).await;
    }
    let topic = nodes[0].topic("news").await;
    let subscription = nodes[0].ordered("reader", &topic, true).await;
    let far = &nodes[2];
    far.sees(&subscription).await;
    let mut reader = Reader::open(&far.router, &subscription, 100).await;
    let first = far.publish(&topic, "key", "1").await;
    let first = first.expect("the cluster is well");
    let delivered = reader.deliveries().await;
    let handed = nodes[0].replicas.hand_over(Duration::from_secs(10));
    soon("the hand-over", handed).await.expect("it runs");
    let second = far.publish(&topic, "key", "2").await;
    second.expect("the cluster is well");
    let again = reader.hears_within(ENDED_SESSION_RELEASE + Duration::from_secs(2));
    assert!(!again.await, "its client still works on {first}");
    let acks = delivered.iter().map(|delivery| delivery.ack).collect();
    assert!(reader.acknowledge(acks).await, "the lease lives");
    reader.read(2).await;
    assert_eq!(reader.first, ["1", "2"]);
}

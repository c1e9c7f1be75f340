//! What a client may have outstanding, over shards that different nodes lead.

use std::time::Duration;

use crate::cluster::{cluster, shard};
use crate::reader::Reader;

#[tokio::test]
async fn no_more_than_the_limit_is_outstanding_over_two_nodes() {
    const LIMIT: usize = 5;
    const COUNT: usize = 40;
    let nodes = cluster(2).await;
    nodes[0].place(shard(2), &[1, 2]).await;
    nodes[1].place(shard(2), &[2]).await;
    let topic = nodes[0].topic("news").await;
    let subscription = nodes[0].subscription("reader", &topic).await;
    nodes[1].sees(&subscription).await;
    for number in 0..COUNT {
        let published = nodes[0].publish(&topic, "", &number.to_string()).await;
        published.expect("the cluster is well");
    }
    let mut reader = Reader::open(&nodes[1].router, &subscription, LIMIT as u32).await;
    let mut outstanding = Vec::new();
    let mut shards = std::collections::BTreeSet::new();
    while reader.first.len() < COUNT {
        while outstanding.len() < LIMIT.min(COUNT - reader.first.len() + outstanding.len()) {
            for delivery in reader.deliveries().await {
                shards.insert(delivery.ack.message.shard());
                outstanding.push(delivery.ack);
            }
            assert!(
                outstanding.len() <= LIMIT,
                "{} are outstanding",
                outstanding.len()
            );
        }
        let more = reader.hears_within(Duration::from_millis(20)).await;
        assert!(!more, "{LIMIT} are outstanding, and more came");
        assert!(reader.acknowledge(std::mem::take(&mut outstanding)).await);
    }
    assert_eq!(shards.len(), 2, "both shards have messages");
}

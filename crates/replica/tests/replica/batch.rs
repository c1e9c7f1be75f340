//! Waiting publishes share an entry, and so an fsync.

use futures::future::join_all;

use crate::node::{Disk, Node, publish, soon};

const PUBLISHERS: usize = 500;

#[tokio::test]
async fn many_publishers_share_few_entries() {
    let node = Node::founded(Disk::memory(), 1).await;
    let topic = node.topic("news").await.incarnation;
    let shard = node.shard();
    let before = node.log_end();
    let publishes = (0..PUBLISHERS).map(|number| {
        let (shard, key) = (shard.clone(), format!("key-{number}"));
        async move { publish(&shard, topic, &key, "data").await }
    });
    let published = soon("all publishes", join_all(publishes)).await;
    let mut ids: Vec<_> = published.into_iter().map(Result::unwrap).collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), PUBLISHERS, "each message has its own id");
    let entries = node.log_end() - before;
    assert!(
        entries < PUBLISHERS as u64 / 10,
        "{PUBLISHERS} publishes took {entries} entries"
    );
}

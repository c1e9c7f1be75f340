//! What a change of the catalogue means for messages.

use engine::dispatch::Ended;

use crate::node::{Disk, Node, message};
use crate::puller::{Puller, messages};

#[tokio::test]
async fn a_message_published_after_the_creation_is_delivered() {
    let node = Node::founded(Disk::memory(), 4).await;
    let topic = node.topic("news").await;
    for number in 0..20 {
        let id = format!("reader-{number}");
        let subscription = node.subscription(&id, &topic).await;
        // At once, and in every shard: the creation has returned.
        let data = format!("message {number}");
        node.publish(&topic, "key", &data).await;
        let mut puller = Puller::open(&node.shard(), &subscription, number).await;
        let deliveries = puller.deliveries().await;
        assert_eq!(messages(&deliveries), [message(&data)]);
        node.delete_subscription(&id).await;
        assert_eq!(puller.ended().await, Ended::NotAttached);
    }
}

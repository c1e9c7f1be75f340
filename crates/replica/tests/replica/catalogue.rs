//! What a change of the catalogue means for messages.

use engine::control::{Command, DeleteSubscription, Reply};
use engine::dispatch::Ended;
use futures::future::join;

use crate::node::{Disk, Node, create_subscription, message, subscription_name};
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

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deletion_is_never_overtaken_by_the_creation_before_it() {
    let node = Node::founded(Disk::memory(), 4).await;
    let topic = node.topic("news").await;
    let mut created = Vec::new();
    for _ in 0..50 {
        // Neither waits for the other; the control group's log decides which is first.
        let create = create_subscription("reader", &topic);
        let name = subscription_name("reader");
        let delete = Command::DeleteSubscription(DeleteSubscription { name });
        let create = node.change(Command::CreateSubscription(create));
        let (creation, _) = join(create, node.change(delete)).await;
        if let Reply::Subscription(subscription) = creation {
            created.push(*subscription);
        }
    }
    node.subscription("other", &topic).await;
    let name = subscription_name("reader");
    node.change(Command::DeleteSubscription(DeleteSubscription { name }))
        .await;
    assert!(
        !created.is_empty(),
        "the first creation finds the name free"
    );
    for (number, subscription) in (0..).zip(&created) {
        for shard in node.replicas.shards().all().values() {
            let mut puller = Puller::open(shard, subscription, number).await;
            assert_eq!(puller.ended().await, Ended::NotAttached);
        }
    }
}

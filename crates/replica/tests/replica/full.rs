//! A disk that is nearly full: publishes are refused, acks are not, and room ends it.

use std::time::Duration;

use engine::control::Topic;
use engine::dispatch::{AckReply, Refused};
use model::MessageId;
use replica::shard::PublishError;
use store::Faults;

use crate::node::{Disk, Node, publish, soon};
use crate::puller::{Puller, ack_ids};

/// Enough that a twentieth of the disk is room for what the test still writes.
const MESSAGES: usize = 200;

/// How long between two looks at a level that the store measures about each second.
const LOOK: Duration = Duration::from_millis(100);

#[tokio::test]
async fn a_nearly_full_disk_refuses_publishes_and_takes_acks() {
    let node = Node::founded(Disk::memory(), 1).await;
    let topic = node.topic("news").await;
    let subscription = node.subscription("reader", &topic).await;
    for _ in 0..MESSAGES {
        node.publish(&topic, "key", &"x".repeat(100)).await;
    }
    let Disk::Memory(disk) = &node.disk else {
        unreachable!("it was founded on a disk in memory")
    };
    let capacity = Some(disk.used() * 20 / 19);
    disk.set_faults(Faults {
        capacity,
        ..Faults::default()
    });

    let full = Err(PublishError::Refused(Refused::DiskFull));
    soon(
        "a refusal",
        until(&node, &topic, |published| *published == full),
    )
    .await;
    let mut puller = Puller::open(&node.shard(), &subscription, 1).await;
    let deliveries = puller.deliveries().await;
    assert_eq!(
        puller.acknowledge(ack_ids(&deliveries[..1])).await,
        [AckReply::Acknowledged]
    );

    disk.set_faults(Faults::default());
    soon("a publish", until(&node, &topic, Result::is_ok)).await;
}

/// Publishes now and then until the answer is as expected.
async fn until(
    node: &Node,
    topic: &Topic,
    expected: impl Fn(&Result<MessageId, PublishError>) -> bool,
) {
    while !expected(&publish(&node.shard(), topic.incarnation, "key", "data").await) {
        // sleep: between two looks at a state, under a deadline
        tokio::time::sleep(LOOK).await;
    }
}

//! What outlives a restart, and a disk that fails.

use engine::control::Subscription;
use engine::dispatch::{AckReply, Ended};
use model::{AckId, GroupId};
use replica::shard::PublishError;
use store::Faults;

use crate::node::{Disk, Node, message, publish, soon};
use crate::puller::{Puller, ack_ids, messages};

/// Publishes two messages and acknowledges the first. Answers the subscription, and the second
/// message's delivery.
async fn half_read(node: &Node) -> (Subscription, AckId) {
    let topic = node.topic("news").await;
    let subscription = node.subscription("reader", &topic).await;
    node.publish(&topic, "key", "one").await;
    node.publish(&topic, "key", "two").await;
    let mut puller = Puller::open(&node.shard(), &subscription, 1).await;
    let deliveries = puller.take_messages(2).await;
    let replies = puller.acknowledge(vec![deliveries[0].ack]).await;
    assert_eq!(replies, [AckReply::Acknowledged]);
    (subscription, deliveries[1].ack)
}

/// The second message comes again, and only it, as another delivery than before.
async fn rest_is_delivered(node: &Node, (subscription, before): &(Subscription, AckId)) {
    let mut puller = Puller::open(&node.shard(), subscription, 2).await;
    let deliveries = puller.deliveries().await;
    assert_eq!(messages(&deliveries), [message("two")]);
    assert!(deliveries[0].ack.generation > before.generation);
    let replies = puller.acknowledge(ack_ids(&deliveries)).await;
    assert_eq!(replies, [AckReply::Acknowledged]);
}

async fn survives_a_restart(disk: Disk) {
    let node = Node::founded(disk, 1).await;
    let read = half_read(&node).await;
    let node = node.restarted().await;
    rest_is_delivered(&node, &read).await;
}

#[tokio::test]
async fn a_restart_in_memory_keeps_messages_and_acks() {
    survives_a_restart(Disk::memory()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_restart_on_disk_keeps_messages_and_acks() {
    survives_a_restart(Disk::folder()).await;
}

#[tokio::test]
async fn a_power_cut_keeps_messages_and_acks() {
    for seed in 0..8 {
        let node = Node::founded(Disk::memory(), 1).await;
        let read = half_read(&node).await;
        let Disk::Memory(disk) = &node.disk else {
            unreachable!("the disk is in memory")
        };
        disk.lose_power(seed);
        let node = node.restarted().await;
        rest_is_delivered(&node, &read).await;
    }
}

#[tokio::test]
async fn a_failed_disk_stops_the_replica_and_leaves_no_caller_waiting() {
    let mut node = Node::founded(Disk::memory(), 1).await;
    let topic = node.topic("news").await;
    node.publish(&topic, "key", "kept").await;
    let Disk::Memory(disk) = &node.disk else {
        unreachable!("the disk is in memory")
    };
    disk.set_faults(Faults {
        syncs_before_failure: Some(0),
        ..Faults::default()
    });
    let shard = node.shard();
    let published = publish(&shard, topic.incarnation, "key", "lost?");
    let refused = soon("an answer", published).await;
    let Err(PublishError::Unavailable(unavailable)) = refused else {
        panic!("a publish that is not on the disk was answered {refused:?}");
    };
    assert!(unavailable.unknown, "the entry may have reached the disk");
    let stopped = soon("the stop", node.replicas.stopped()).await;
    assert_eq!(stopped.group, GroupId::Shard(shard.shard()));
}

#[tokio::test]
async fn a_state_that_cannot_be_read_stops_the_replica_and_its_sessions() {
    let mut node = Node::founded(Disk::memory(), 1).await;
    let topic = node.topic("news").await;
    let subscription = node.subscription("reader", &topic).await;
    node.publish(&topic, "key", "one").await;
    let Disk::Memory(disk) = &node.disk else {
        unreachable!("the disk is in memory")
    };
    disk.set_faults(Faults {
        reads_fail: true,
        ..Faults::default()
    });
    let shard = node.shard();
    let mut puller = Puller::open(&shard, &subscription, 1).await;
    assert_eq!(puller.ended().await, Ended::Reopen);
    let stopped = soon("the stop", node.replicas.stopped()).await;
    assert_eq!(stopped.group, GroupId::Shard(shard.shard()));
}

#[tokio::test]
async fn the_log_is_cut_behind_what_is_flushed() {
    let node = Node::founded(Disk::memory(), 1).await;
    let read = half_read(&node).await;
    node.store.flush_state().unwrap();
    let group = GroupId::Shard(node.shard().shard());
    let end = node.log_end();
    let cut = async {
        loop {
            let purged = node.store.log_bounds(group).unwrap().purged;
            if purged.is_some_and(|purged| purged.index >= end) {
                return;
            }
            node.store.flush_state().unwrap();
            tokio::task::yield_now().await;
        }
    };
    soon("the cut", cut).await;
    let node = node.restarted().await;
    rest_is_delivered(&node, &read).await;
}

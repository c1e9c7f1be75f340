//! From a publish to its ack.

use engine::control::DeadLetter;
use engine::dispatch::{AckReply, Ended, Forwarded, Refused};
use model::limits::DELIVERY_ATTEMPTS_MIN;
use replica::shard::PublishError;
use tokio::time::Instant;

use crate::node::{Disk, Node, SECRET, message, publish, run, soon, topic_name};
use crate::puller::{Puller, ack_ids, messages};

async fn publish_to_ack(disk: Disk) {
    let node = Node::founded(disk, 1).await;
    let topic = node.topic("news").await;
    let subscription = node.subscription("reader", &topic).await;
    let first = node.publish(&topic, "key", "one").await;
    let second = node.publish(&topic, "key", "two").await;
    assert!(first < second, "ids grow within a key");

    let mut puller = Puller::open(&node.shard(), &subscription, 1).await;
    let deliveries = puller.take_messages(2).await;
    assert_eq!(messages(&deliveries), [message("one"), message("two")]);
    assert_eq!(deliveries[0].ack.message, first);
    let replies = puller.acknowledge(ack_ids(&deliveries)).await;
    assert_eq!(replies, [AckReply::Acknowledged; 2]);
    node.shut_down().await;
}

#[tokio::test]
async fn a_message_goes_from_publish_to_ack_in_memory() {
    publish_to_ack(Disk::memory()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_goes_from_publish_to_ack_on_disk() {
    publish_to_ack(Disk::folder()).await;
}

#[tokio::test]
async fn a_publish_that_comes_too_late_is_refused() {
    let node = Node::founded(Disk::memory(), 1).await;
    let topic = node.topic("news").await.incarnation;
    let strand = SECRET.key_hash(topic, "key");
    let deadline = Some(Instant::now());
    let shard = node.shard();
    let late = shard.publish(topic, strand, true, run(&["late"]), deadline);
    let refused = soon("the refusal", late).await;
    assert_eq!(refused, Err(PublishError::Refused(Refused::DeadlinePassed)));
}

#[tokio::test]
async fn a_dead_letter_goes_out_and_its_message_is_settled() {
    let mut node = Node::founded(Disk::memory(), 1).await;
    let topic = node.topic("news").await;
    node.topic("dead").await;
    let subscription = node
        .subscription_as("reader", &topic, |create| {
            create.dead_letter = Some(DeadLetter {
                topic: topic_name("dead"),
                attempts_max: DELIVERY_ATTEMPTS_MIN,
            });
        })
        .await;
    let mut puller = Puller::open(&node.shard(), &subscription, 1).await;
    node.publish(&topic, "key", "poison").await;
    node.publish(&topic, "key", "good").await;
    for attempt in 1..=DELIVERY_ATTEMPTS_MIN {
        let mut deliveries = puller.deliveries().await;
        while deliveries[0].message != message("poison") {
            deliveries = puller.deliveries().await;
        }
        assert_eq!(deliveries[0].delivery_attempt, attempt);
        puller.nack(vec![deliveries[0].ack]).await;
    }
    let letter = soon("the dead letter", node.forwards.recv()).await;
    let letter = letter.expect("the node runs");
    assert_eq!(letter.topic, topic_name("dead"));
    assert!(letter.message.starts_with(&message("poison")));
    letter.answer.send(Forwarded::Stored).unwrap();
    let next = puller.deliveries().await;
    assert_eq!(messages(&next), [message("good")]);
}

#[tokio::test]
async fn a_shutdown_answers_everyone() {
    let node = Node::founded(Disk::memory(), 1).await;
    let topic = node.topic("news").await;
    let subscription = node.subscription("reader", &topic).await;
    let shard = node.shard();
    let mut puller = Puller::open(&shard, &subscription, 1).await;
    let publishers: Vec<_> = (0..100)
        .map(|number| {
            let (shard, topic) = (shard.clone(), topic.incarnation);
            tokio::spawn(async move { publish(&shard, topic, "key", &format!("{number}")).await })
        })
        .collect();
    node.shut_down().await;
    assert_eq!(puller.ended().await, Ended::Reopen);
    for publisher in publishers {
        match soon("an answer", publisher).await.unwrap() {
            Ok(_) => {}
            Err(PublishError::Unavailable(unavailable)) => assert!(!unavailable.unknown),
            Err(refused) => panic!("{refused}"),
        }
    }
}

#[tokio::test]
async fn what_a_vanished_listener_did_not_see_goes_to_another_session() {
    let node = Node::founded(Disk::memory(), 1).await;
    let topic = node.topic("news").await;
    let subscription = node.subscription("reader", &topic).await;
    node.publish(&topic, "key", "one").await;
    let vanished = Puller::open(&node.shard(), &subscription, 1).await;
    vanished.vanish().await;
    let mut puller = Puller::open(&node.shard(), &subscription, 2).await;
    let deliveries = puller.deliveries().await;
    assert_eq!(messages(&deliveries), [message("one")]);
}

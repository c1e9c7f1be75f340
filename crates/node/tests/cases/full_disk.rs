//! The disk of a node fills up under load: publishes are refused, what makes room is taken, and
//! room that is made is enough. Needs what [`crate::disk`] needs.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use proto::pubsub::PubsubMessage;
use tokio::time::{Instant, sleep};
use tonic::{Code, Status};

use crate::client::{Client, ordered};
use crate::disk::Disk;
use crate::node::Node;

const MEBIBYTE: usize = 1024 * 1024;
/// Messages of one publish, and bytes of each.
const BATCH: usize = 8;
const MESSAGE_BYTES: usize = 128 * 1024;
/// How long room may take to be made, or to be seen: a few rounds of cutting logs and flushing.
const PATIENCE: Duration = Duration::from_secs(90);
/// Between two looks at a state.
const LOOK: Duration = Duration::from_millis(200);

/// A node whose folder is on a small disk, and what it has answered OK.
struct Case {
    disk: Disk,
    node: Node,
    client: Client,
    topic: String,
    subscription: String,
    /// Ids of messages whose publish was answered OK and that were not acknowledged.
    backlog: BTreeSet<String>,
}

impl Case {
    async fn new(test: &str) -> Option<Self> {
        let disk = Disk::new(test)?;
        let node = Node::start_in(disk.path().join("data"));
        let client = Client::new(&node);
        let topic = client.topic("orders").await;
        let subscription = client.subscription("shipping", &topic, ordered()).await;
        Some(Case {
            disk,
            node,
            client,
            topic,
            subscription,
            backlog: BTreeSet::new(),
        })
    }

    fn restart(&mut self) {
        self.node.restart();
        // Its connection has ended with the process.
        self.client = Client::new(&self.node);
    }

    /// Publishes a batch; whether it was taken. There is one reason for which it may not be.
    async fn publish(&mut self) -> bool {
        match self.try_publish().await {
            Ok(()) => true,
            Err(status) => {
                assert_eq!(status.code(), Code::ResourceExhausted, "{status:?}");
                false
            }
        }
    }

    async fn try_publish(&mut self) -> Result<(), Status> {
        // Noise, of which no compression makes less.
        let mut data = vec![0; MESSAGE_BYTES];
        rand::fill(&mut data[..]);
        let message = PubsubMessage {
            data: data.into(),
            ordering_key: format!("key-{}", self.backlog.len() % 7),
            ..PubsubMessage::default()
        };
        let messages = vec![message; BATCH];
        let ids = self.client.try_publish(&self.topic, &messages).await?;
        self.backlog.extend(ids);
        Ok(())
    }

    /// Publishes until the disk is too full.
    async fn fill(&mut self) {
        while self.publish().await {}
    }

    /// Waits until publishes are taken again, without a helping hand.
    async fn publishes_again(&mut self) {
        let deadline = Instant::now() + PATIENCE;
        while !self.publish().await {
            let free = free(self.disk.path()) / MEBIBYTE as u64;
            assert!(
                Instant::now() < deadline,
                "still full, with {free} MiB free"
            );
            // sleep: between two looks at a state, under a deadline
            sleep(LOOK).await;
        }
    }

    /// Pulls and acknowledges until `left` messages are not acknowledged.
    async fn consume(&mut self, left: usize) {
        while self.backlog.len() > left {
            let received = self.client.pull(&self.subscription, 20).await;
            self.client.acknowledge(&self.subscription, &received).await;
            for received in received {
                let id = received.message.expect("a delivery has one").message_id;
                self.backlog.remove(&id);
            }
        }
    }
}

#[tokio::test]
async fn acknowledged_messages_make_room_on_a_full_disk() {
    let test = "full_disk::acknowledged_messages_make_room_on_a_full_disk";
    let Some(mut case) = Case::new(test).await else {
        return;
    };
    case.fill().await;
    // What a full disk must still do.
    let spare = case.client.subscription("spare", &case.topic, ordered());
    let spare = spare.await;
    case.client.delete_subscription(&spare).await;
    case.consume(case.backlog.len() - 5).await;

    case.fill().await;
    case.node.kill();
    case.restart();
    // All that was answered is there, and its acks make room for as much again.
    let all = case.backlog.len();
    assert!(
        all * MESSAGE_BYTES > 150 * MEBIBYTE,
        "{all} fill a disk of 512 MiB"
    );
    case.consume(0).await;
    while case.backlog.len() < all / 2 {
        case.publishes_again().await;
    }
    case.consume(0).await;
}

#[tokio::test]
async fn a_deleted_topic_makes_room_on_a_full_disk() {
    let test = "full_disk::a_deleted_topic_makes_room_on_a_full_disk";
    let Some(mut case) = Case::new(test).await else {
        return;
    };
    case.fill().await;
    let subscription = case.subscription.clone();
    case.client.delete_subscription(&subscription).await;
    case.client.delete_topic(&case.topic).await;
    case.topic = case.client.topic("later-orders").await;
    case.publishes_again().await;
}

#[tokio::test]
async fn a_disk_that_others_filled_to_the_last_byte_loses_nothing() {
    let test = "full_disk::a_disk_that_others_filled_to_the_last_byte_loses_nothing";
    let Some(mut case) = Case::new(test).await else {
        return;
    };
    for _ in 0..20 {
        assert!(case.publish().await);
    }
    let ballast = case.disk.path().join("ballast");
    grow(&ballast);
    // It refuses, or stops where the disk has refused a write: then nobody knows what is on it.
    while case.try_publish().await.is_ok() {}
    // The reserve that a full disk is given back, others may fill as well.
    grow(&ballast);
    case.node.kill_or_ended();

    fs::remove_file(&ballast).expect("it was made");
    case.restart();
    case.publishes_again().await;
    case.consume(0).await;
}

/// Grows a file until nothing more can be written.
fn grow(ballast: &PathBuf) {
    let mut file = File::options()
        .create(true)
        .append(true)
        .open(ballast)
        .expect("a file takes no room");
    for size in [MEBIBYTE, 4 * 1024, 1] {
        while file.write_all(&vec![1; size]).is_ok() {}
    }
}

/// Bytes that can be written.
fn free(disk: &Path) -> u64 {
    let output = std::process::Command::new("df")
        .args(["--output=avail", "-B1"])
        .arg(disk)
        .output()
        .expect("df is there");
    let text = String::from_utf8(output.stdout).expect("df prints text");
    let bytes = text
        .lines()
        .nth(1)
        .and_then(|line| line.trim().parse().ok());
    bytes.expect("df prints a number")
}

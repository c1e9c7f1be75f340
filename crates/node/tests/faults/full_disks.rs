//! The disk of one node of a cluster fills up under load, to the last byte; then those of all nodes
//! nearly do. Needs what [`crate::disk`] needs.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use proto::pubsub::publisher_client::PublisherClient;
use proto::pubsub::{PublishRequest, PubsubMessage};
use tokio::time::{Instant, interval};
use tonic::{Code, Request, Status};

use crate::audit::load::{Load, TOPIC_ALONE};
use crate::audit::resources::create_topic;
use crate::audit::way::to;
use crate::cluster::Cluster;
use crate::disk::Disk;
use crate::{ACKS, PACE};

const MEBIBYTE: u64 = 1024 * 1024;
/// So much is left free where a disk is nearly full: publishes are refused, the rest is not.
const NEARLY_FULL: u64 = 30 * MEBIBYTE;
const CALL_MAX: Duration = Duration::from_secs(5);
/// How long nodes may take to see that a disk is full, or has room again.
const SEEN_IN: Duration = Duration::from_secs(60);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn others_go_on_where_one_disk_is_full_and_room_is_enough_where_all_were() {
    let test = "full_disks::others_go_on_where_one_disk_is_full_and_room_is_enough_where_all_were";
    let disks: Option<Vec<Disk>> = (0..3).map(|_| Disk::new(test)).collect();
    let Some(disks) = disks else {
        return;
    };
    let ballasts: Vec<PathBuf> = disks
        .iter()
        .map(|disk| disk.path().join("ballast"))
        .collect();
    let mut cluster = Cluster::of_regions_at(|number, place| {
        place.folder = disks[number].path().join("node");
    })
    .await;
    let endpoints = cluster.endpoints();
    let load = Load::start(&endpoints, PACE).await;
    load.goes_on(ACKS).await;

    // First as far as it goes by itself, then to the last byte, which may end the node.
    for left in [NEARLY_FULL, 0] {
        fill(&ballasts[0], left);
        load.goes_on(2 * ACKS).await;
    }
    cluster.members()[0].kill_or_ended();
    load.goes_on(ACKS).await;
    fs::remove_file(&ballasts[0]).expect("it was made");
    cluster.members()[0].start();
    cluster.ready().await;

    for ballast in &ballasts {
        fill(ballast, NEARLY_FULL);
    }
    until_answered(&endpoints, Err(Code::ResourceExhausted)).await;
    for ballast in &ballasts {
        fs::remove_file(ballast).expect("it was made");
    }
    until_answered(&endpoints, Ok(())).await;
    load.goes_on(ACKS).await;
    cluster.ends_well(load).await;
}

/// Publishes through each node until it gives this answer.
async fn until_answered(endpoints: &[String], wanted: Result<(), Code>) {
    create_topic(endpoints, TOPIC_ALONE).await;
    for endpoint in endpoints {
        let give_up = Instant::now() + SEEN_IN;
        let mut look = interval(Duration::from_millis(100));
        loop {
            look.tick().await;
            let answer = publish(endpoint).await.map_err(|status| status.code());
            if answer == wanted {
                break;
            }
            assert!(Instant::now() < give_up, "{answer:?} from {endpoint}");
        }
    }
}

async fn publish(endpoint: &str) -> Result<(), Status> {
    let message = PubsubMessage {
        data: "an order".into(),
        ..PubsubMessage::default()
    };
    let mut request = Request::new(PublishRequest {
        topic: TOPIC_ALONE.to_owned(),
        messages: proto::wire::encode_all(&[message]),
    });
    request.set_timeout(CALL_MAX);
    let mut publisher = PublisherClient::new(to(endpoint).connect_lazy());
    publisher.publish(request).await.map(drop)
}

/// Grows a file until no more than `left` bytes are free.
fn fill(ballast: &Path, left: u64) {
    let mut file = File::options()
        .create(true)
        .append(true)
        .open(ballast)
        .expect("a file takes no room");
    let spare = free(ballast).saturating_sub(left);
    let piece = vec![1; MEBIBYTE as usize];
    for _ in 0..spare / MEBIBYTE {
        if file.write_all(&piece).is_err() {
            break;
        }
    }
    if left == 0 {
        for size in [4 * 1024, 1] {
            while file.write_all(&piece[..size]).is_ok() {}
        }
    }
}

/// Bytes that can be written where a file is.
fn free(file: &Path) -> u64 {
    let output = Command::new("df")
        .args(["--output=avail", "-B1"])
        .arg(file)
        .output()
        .expect("df is there");
    let text = String::from_utf8(output.stdout).expect("df prints text");
    let bytes = text
        .lines()
        .nth(1)
        .and_then(|line| line.trim().parse().ok());
    bytes.expect("df prints a number")
}

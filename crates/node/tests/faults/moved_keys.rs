//! Operators pin and move ordering keys.

use std::collections::BTreeSet;
use std::fs;
use std::process::{Command, Stdio};

use proto::pubsub::publisher_client::PublisherClient;
use proto::pubsub::{MessageStoragePolicy, Topic};
use serde_json::Value;

use crate::audit::load::Load;
use crate::audit::way::Way;
use crate::cluster::Cluster;
use crate::member::Member;
use crate::{ACKS, PACE};

/// How a command ends that makes no sense, that is refused, and that has not done all of it.
const USAGE: i32 = 2;
const REFUSED: i32 = 4;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_is_pinned_and_moved_where_an_operator_wants_it() {
    let mut cluster = Cluster::of_regions().await;
    let node = &cluster.members()[0];
    run(node, &["topics", "create", "orders"]).await;
    let shards = Shards::of(node).await;
    let (north, south) = (shards.region("north"), shards.region("south"));

    run(node, &["keys", "pin", "orders", "early", "--shard", &south]).await;
    assert_eq!(place(node, "orders", "early").await, south);
    let pin_again = ["keys", "pin", "orders", "early", "--shard", &north];
    let text = refused(node, &pin_again, REFUSED);
    assert!(text.contains(&south), "{text}");
    assert!(
        text.contains(&format!(
            "keys move projects/orderly/topics/orders early --to-shard {north}"
        )),
        "{text}"
    );
    // Nothing is stored of it: only its pin moves.
    let moved = run(
        node,
        &["keys", "move", "orders", "early", "--to-shard", &north],
    )
    .await;
    assert_eq!(moved["outcome"], "moved", "{moved}");
    assert_eq!(place(node, "orders", "early").await, north);

    publish(node, "orders", "customer").await;
    let moved = run(
        node,
        &["keys", "move", "orders", "customer", "--to-region", "west"],
    )
    .await;
    assert_eq!(
        (&moved["outcome"], &moved["region"]),
        (&"moved".into(), &"west".into()),
        "{moved}"
    );
    assert!(moved["tookMs"].as_f64() > Some(0.0), "{moved}");
    assert_eq!(
        place(node, "orders", "customer").await,
        shards.region("west")
    );
    publish(node, "orders", "customer").await;
    assert_eq!(
        place(node, "orders", "customer").await,
        shards.region("west")
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_move_that_can_not_be_is_refused_with_what_to_do() {
    let mut cluster = Cluster::of_regions().await;
    let node = &cluster.members()[0];
    run(node, &["topics", "create", "orders"]).await;
    create_local(node, "north").await;
    for topic in ["orders", "local"] {
        publish(node, topic, "k").await;
    }
    let shards = Shards::of(node).await;
    let (here, south) = (place(node, "orders", "k").await, shards.region("south"));

    let cases: [(&[&str], i32, &str); 8] = [
        (
            &["orders", "k", "--to-shard", "999"],
            REFUSED,
            "the shards are shard-1, ",
        ),
        (
            &["orders", "k", "--to-region", "east"],
            REFUSED,
            "the regions are north, ",
        ),
        (&["orders", "k", "--to-shard", &here], REFUSED, "already"),
        (&["orders", "k", "--to-region", "north"], REFUSED, "already"),
        (
            &["nowhere", "k", "--to-shard", &south],
            REFUSED,
            "not found",
        ),
        (
            &["local", "k", "--to-region", "south"],
            REFUSED,
            "message_storage_policy",
        ),
        (
            &["local", "k", "--to-shard", &here],
            REFUSED,
            "survival goal",
        ),
        (&["orders", "k"], USAGE, "--to-shard"),
    ];
    for (arguments, code, says) in cases {
        let arguments = [&["keys", "move"], arguments].concat();
        let text = refused(node, &arguments, code);
        assert!(text.contains(says), "{arguments:?}: {text}");
    }
    assert_eq!(place(node, "orders", "k").await, here);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_keys_move_with_one_command() {
    const KEYS: usize = 200;
    let mut cluster = Cluster::of_regions().await;
    let node = &cluster.members()[0];
    run(node, &["topics", "create", "orders"]).await;
    let shards = Shards::of(node).await;
    let names: Vec<String> = (0..KEYS).map(|key| format!("customer-{key}")).collect();
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("keys.txt");
    fs::write(&file, names.join("\n")).expect("it takes a file");
    let file = file.to_str().expect("a path in characters");

    let to = |region| {
        [
            "keys",
            "move",
            "orders",
            "--keys-from",
            file,
            "--to-region",
            region,
        ]
    };
    let pinned = run(node, &to("north")).await;
    assert_eq!(pinned["pinned"], KEYS, "{pinned}");
    for name in names.iter().step_by(10) {
        publish(node, "orders", name).await;
    }
    let moved = run(node, &to("south")).await;
    assert_eq!(moved["moved"], KEYS, "{moved}");
    let again = run(node, &to("south")).await;
    assert_eq!(again["alreadyThere"], KEYS, "{again}");

    let (from, north) = (shards.region("south"), shards.region("north"));
    let all = [
        "keys",
        "move",
        "orders",
        "--from-shard",
        &from,
        "--to-shard",
        &north,
    ];
    let moved = run(node, &all).await;
    assert_eq!(moved["keys"], KEYS, "{moved}");
    let listed = run(node, &["keys", "list", "--topic", "orders"]).await;
    let listed = listed.as_array().expect("a list");
    let places: BTreeSet<_> = listed.iter().map(|key| key["shard"].as_str()).collect();
    assert_eq!((listed.len(), places), (KEYS, [Some(&*north)].into()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn keys_move_back_and_forth_under_load_and_every_promise_is_kept() {
    let mut cluster = Cluster::of_regions().await;
    let load = Load::start(&cluster.endpoints(), PACE).await;
    load.goes_on(ACKS).await;
    for round in 0..2 {
        for (number, region) in ["south", "west", "north"].into_iter().enumerate() {
            let node = &cluster.members()[(number + round) % 3];
            let shard = Shards::of(node).await.region(region);
            let mut arguments = vec!["keys", "move", "orders", "--to-region", region];
            let names: Vec<String> = (0..15)
                .map(|key| format!("key-{}-{}", key / 5, key % 5))
                .collect();
            arguments.extend(names.iter().map(String::as_str));
            let moved = run(node, &arguments).await;
            assert_eq!(moved["notMoved"], Value::Array(Vec::new()), "{moved}");
            for name in names.iter().step_by(7) {
                assert_eq!(place(node, "orders", name).await, shard);
            }
            load.goes_on(ACKS).await;
        }
    }
    load.ends_well().await;
}

/// The shards of the cluster that survive the loss of a region.
struct Shards(Value);

impl Shards {
    async fn of(node: &Member) -> Self {
        Shards(run(node, &["shards", "list"]).await)
    }

    /// The only one that is at home there.
    fn region(&self, region: &str) -> String {
        let shards = self.0.as_array().expect("a list").iter();
        let mut found = shards.filter(|shard| shard["home"] == region && shard["goal"] == "region");
        let shard = found.next().expect("each region has one");
        shard["name"].as_str().expect("a name").to_owned()
    }
}

/// Runs a command that must succeed.
async fn run(node: &Member, arguments: &[&str]) -> Value {
    let said = node.operate(arguments).await;
    said.unwrap_or_else(|why| panic!("{arguments:?}: {why}"))
}

/// Runs a command that must end so: what it says.
fn refused(node: &Member, arguments: &[&str], code: i32) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_orderly"));
    command
        .args(["--endpoint", &node.endpoint()])
        .args(arguments);
    let output = command.stdin(Stdio::null()).output().expect("it runs");
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(code), "{arguments:?}: {text}");
    text
}

/// The shard that has a key.
async fn place(node: &Member, topic: &str, key: &str) -> String {
    let found = run(node, &["keys", "where", topic, key]).await;
    found["shard"].as_str().expect("a name").to_owned()
}

/// Creates a topic whose messages stay in one region.
async fn create_local(node: &Member, region: &str) {
    let topic = Topic {
        name: "projects/orderly/topics/local".to_owned(),
        message_storage_policy: Some(MessageStoragePolicy {
            allowed_persistence_regions: vec![region.to_owned()],
            ..MessageStoragePolicy::default()
        }),
        ..Topic::default()
    };
    let channel = Way::new(&[node.endpoint()], 0).channel().await;
    let created = PublisherClient::new(channel).create_topic(topic).await;
    created.expect("the topic is as the API has it");
}

async fn publish(node: &Member, topic: &str, key: &str) {
    let arguments = [
        "topics",
        "publish",
        topic,
        "--message",
        "text",
        "--ordering-key",
        key,
    ];
    run(node, &arguments).await;
}

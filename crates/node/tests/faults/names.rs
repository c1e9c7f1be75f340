//! What operators type that means nothing is refused, with what there is.

use serde_json::Value;

use crate::cluster::Cluster;
use crate::member::Member;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_not_there_is_refused_with_what_is() {
    let mut cluster = Cluster::of_regions().await;
    let member = &cluster.members()[0];
    member
        .operate(&["topics", "create", "orders"])
        .await
        .expect("it is created");
    let regions = ["north", "south", "west"];
    let shards = ["shard-1", "shard-2", "shard-3"];
    let nodes = ["north-0", "south-1", "west-2"];
    for (typed, known) in [
        ("keys list --shard foo", shards),
        ("keys list --shard 99", shards),
        ("keys list --region nowhere", regions),
        ("keys move orders --from-shard foo --to-shard 1", shards),
        ("keys move orders a --to-shard foo", shards),
        ("keys move orders a --to-region nowhere", regions),
        ("keys pin orders a --region nowhere", regions),
        ("shards add --region nowhere", regions),
        ("shards describe foo", shards),
        ("regions describe nowhere", regions),
        ("drill region-loss --region nowhere --dry-run", regions),
        ("drill node-loss --node nowhere --live --hook true", nodes),
        ("drill drain --node nowhere --dry-run", nodes),
    ] {
        let said = refused(member, &typed.split(' ').collect::<Vec<_>>()).await;
        for name in known {
            assert!(said.contains(name), "{typed} names {name}: {said}");
        }
    }
    other_nonsense_is_refused(member).await;
    let there = format!("{}:10085", member.endpoint().trim_end_matches(":8085"));
    let before_the_noun = ["--endpoint", "127.0.0.1:1", "--admin-endpoint", &there];
    let listed = member
        .operate(&[&before_the_noun[2..], &["nodes", "list"]].concat())
        .await;
    assert_eq!(
        listed.expect("it is taken").as_array().map(Vec::len),
        Some(3)
    );
}

async fn other_nonsense_is_refused(member: &Member) {
    let said = refused(member, &["keys", "where", "orders", ""]).await;
    assert!(said.contains("not empty"), "{said}");
    let said = refused(
        member,
        &[
            "topics",
            "list",
            "--ca",
            "a",
            "--certificate",
            "b",
            "--key",
            "c",
        ],
    )
    .await;
    assert!(said.contains("are for drill, keys, nodes"), "{said}");
    let far = [
        "shards",
        "verify",
        "--patience",
        "0",
        "--admin-endpoints",
        "127.0.0.1:1",
    ];
    let said = refused(member, &far).await;
    assert!(
        said.contains("127.0.0.1:1") && said.contains("admin_listen"),
        "{said}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pinned_key_without_messages_moves() {
    let mut cluster = Cluster::of_regions().await;
    let member = &cluster.members()[0];
    member
        .operate(&["topics", "create", "orders"])
        .await
        .expect("it is created");
    let pin = ["keys", "pin", "orders", "a", "--region", "north"];
    member.operate(&pin).await.expect("it is pinned");
    let to = ["keys", "move", "orders", "a", "--to-region", "south"];
    let moved = member.operate(&to).await.expect("it is moved");
    assert_eq!(moved["outcome"], "moved", "{moved:#}");
    assert_eq!(moved["region"], "south", "{moved:#}");
    let new = ["keys", "move", "orders", "b", "--to-region", "south"];
    let pinned: Value = member.operate(&new).await.expect("it is pinned there");
    assert_eq!(pinned["outcome"], "pinned", "{pinned:#}");
}

async fn refused(member: &Member, words: &[&str]) -> String {
    let answered = member.operate(words).await;
    answered.expect_err(&format!("{words:?} is refused"))
}

//! A node loses its disk, and a node is silent for too long.

use serde_json::Value;

use crate::audit::load::Load;
use crate::cluster::Cluster;
use crate::{ACKS, PACE};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_with_an_empty_disk_takes_the_place_of_the_one_that_lost_it() {
    let mut cluster = Cluster::of_one_region(3).await;
    let load = Load::start(&cluster.endpoints(), PACE).await;
    load.goes_on(ACKS).await;

    let name = cluster.members()[2].name().to_owned();
    let asked = &cluster.members()[0];
    let described = asked.operate(&["nodes", "describe", &name]).await.unwrap();
    let old = described["number"].clone();
    let early = asked.operate(&["nodes", "replace", &name]).await;
    let early = early.expect_err("the node is there");
    assert!(early.contains("was heard"), "{early}");
    cluster.members()[2].kill();
    cluster.members()[2].lose_disk();

    let asked = &cluster.members()[0];
    let is_silent = |nodes: &[Value]| {
        let lost = nodes.iter().find(|node| node["number"] == old);
        lost.is_some_and(|node| node["silentMs"].as_u64() > Some(10_000))
    };
    asked.sees("the node is silent", is_silent).await;
    let replaced = asked.operate(&["nodes", "replace", &name]).await.unwrap();
    assert_eq!(replaced["state"], "replaced");
    cluster.members()[2].start();
    let asked = &cluster.members()[0];
    let is_replaced = |nodes: &[Value]| {
        let by_number = |node: &Value| node["name"] == *name && node["number"] != old;
        let heir = nodes.iter().find(|node| by_number(node));
        let out = nodes.iter().find(|node| node["number"] == old);
        let all = |heir: &Value| heir["votes"].as_array().map(Vec::len) == Some(4);
        out.is_some_and(|node| node["state"] == "removed") && heir.is_some_and(all)
    };
    asked
        .sees("the new node votes everywhere", is_replaced)
        .await;
    cluster.ready().await;

    // What it has is worth a vote: with it, the cluster goes on without another.
    cluster.members()[1].kill();
    load.goes_on(ACKS).await;
    cluster.members()[1].start();
    cluster.ready().await;
    cluster.ends_well(load).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_is_silent_for_too_long_gives_its_votes_to_others() {
    let mut cluster = Cluster::of_one_region(4).await;
    let load = Load::start(&cluster.endpoints(), PACE).await;
    load.goes_on(ACKS).await;

    let name = cluster.members()[0].name().to_owned();
    cluster.members()[0].kill();
    let votes = |count: fn(usize) -> bool| {
        let name = name.clone();
        move |nodes: &[Value]| {
            let node = nodes.iter().find(|node| node["name"] == *name);
            let votes = node.and_then(|node| node["votes"].as_array());
            votes.is_some_and(|votes| count(votes.len()))
        }
    };
    let asked = &cluster.members()[1];
    asked
        .sees("it votes nowhere", votes(|count| count == 0))
        .await;
    load.goes_on(ACKS).await;
    cluster.members()[0].start();
    cluster.ready().await;
    let asked = &cluster.members()[1];
    asked
        .sees("it has its share again", votes(|count| count > 0))
        .await;
    cluster.ends_well(load).await;
}

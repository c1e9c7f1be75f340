//! A node is sent away for good.

use serde_json::json;

use crate::audit::load::Load;
use crate::cluster::Cluster;
use crate::{ACKS, PACE};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_leaves_when_others_have_what_it_had() {
    let mut cluster = Cluster::of_one_region(4).await;
    let load = Load::start(&cluster.endpoints(), PACE).await;
    load.goes_on(ACKS).await;

    let names: Vec<String> = cluster
        .members()
        .iter()
        .map(|it| it.name().to_owned())
        .collect();
    let asked = &cluster.members()[1];
    let gone = asked
        .operate(&["nodes", "decommission", &names[0], "--wait"])
        .await;
    let gone = gone.expect("there is a node to take its place");
    assert_eq!(
        (&gone["state"], &gone["votes"]),
        (&json!("removed"), &json!([]))
    );
    let status = cluster.members()[0].ends();
    assert!(
        status.success(),
        "a node that is out ends by itself: {status:?}"
    );
    load.goes_on(ACKS).await;

    // Three are left, and the third can't be spared.
    let asked = &cluster.members()[1];
    let refused = asked.operate(&["nodes", "decommission", &names[2]]).await;
    let refused = refused.expect_err("the others would survive less");
    assert!(
        refused.contains("start a node in region \"north\""),
        "{refused}"
    );
    cluster.ends_well(load).await;
}

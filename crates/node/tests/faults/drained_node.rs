//! Each node in turn is brought to rest by its operator, and taken back.

use proto::pubsub::PullRequest;
use proto::pubsub::subscriber_client::SubscriberClient;
use serde_json::json;
use tonic::Code;

use crate::audit::load::{AT_LEAST_ONCE, Load};
use crate::audit::way::{answers_well, to};
use crate::cluster::Cluster;
use crate::{ACKS, PACE};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_drained_node_leads_nothing_and_votes_on() {
    let mut cluster = Cluster::of_one_region(3).await;
    let load = Load::start(&cluster.endpoints(), PACE).await;
    for number in 0..3 {
        load.goes_on(ACKS).await;
        let (name, endpoint) = {
            let member = &cluster.members()[number];
            (member.name().to_owned(), member.endpoint())
        };
        let asked = &cluster.members()[(number + 1) % 3];
        let node = asked.operate(&["nodes", "drain", &name, "--wait"]).await;
        let node = node.expect("the node can be drained");
        assert_eq!(
            (&node["state"], &node["leads"]),
            (&json!("draining"), &json!([]))
        );
        assert_eq!(node["votes"], node["votesWanted"]);
        assert!(!answers_well(&endpoint, "/readyz").await);
        assert_eq!(pull(&endpoint).await, Code::Unavailable);

        load.goes_on(ACKS).await;
        let node = asked.operate(&["nodes", "activate", &name]).await;
        assert_eq!(node.expect("the node can be taken back")["state"], "active");
        cluster.ready().await;
    }
    cluster.ends_well(load).await;
}

/// How a pull ends that must be refused.
async fn pull(endpoint: &str) -> Code {
    let channel = to(endpoint).connect().await.expect("the node listens");
    let request = PullRequest {
        subscription: AT_LEAST_ONCE.0.to_owned(),
        max_messages: 1,
        ..PullRequest::default()
    };
    let pulled = SubscriberClient::new(channel).pull(request).await;
    pulled.expect_err("no session begins here").code()
}

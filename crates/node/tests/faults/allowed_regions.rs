//! One of the regions is lost in which the messages of a topic may be stored. They go to another then,
//! also through nodes in regions that may not store them.

use std::time::Duration;

use proto::pubsub::publisher_client::PublisherClient;
use proto::pubsub::{MessageStoragePolicy, PublishRequest, PubsubMessage, Topic};
use tonic::transport::Channel;

use crate::audit::load::retried;
use crate::audit::resources::create_topic_as;
use crate::cluster::Cluster;

const TOPIC: &str = "projects/audit/topics/within";
/// The deadline of a publish: shorter than that of clients, so that the test fails before they would.
const CALL_MAX: Duration = Duration::from_secs(10);
/// North is lost; south may not store, and publishes.
const NORTH: usize = 0;
const SOUTH: usize = 1;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn messages_go_to_the_other_allowed_region() {
    let mut cluster = Cluster::of_regions().await;
    let endpoints = cluster.endpoints();
    let topic = Topic {
        name: TOPIC.to_owned(),
        message_storage_policy: Some(MessageStoragePolicy {
            allowed_persistence_regions: vec!["north".into(), "west".into()],
            ..MessageStoragePolicy::default()
        }),
        ..Topic::default()
    };
    create_topic_as(&endpoints, &topic).await;
    let through_south = [endpoints[SOUTH].clone()];
    publish(&through_south, "before").await;

    cluster.members()[NORTH].kill();
    for key in ["", "after", "later"] {
        publish(&through_south, key).await;
    }
}

/// Publishes as clients do, again where the answer says so.
async fn publish(endpoints: &[String], ordering_key: &str) {
    let message = PubsubMessage {
        data: "within".into(),
        ordering_key: ordering_key.into(),
        ..PubsubMessage::default()
    };
    let request = PublishRequest {
        topic: TOPIC.to_owned(),
        messages: proto::wire::encode_all(&[message]),
    };
    retried(endpoints, CALL_MAX, async |channel: Channel| {
        let mut publisher = PublisherClient::new(channel);
        publisher.publish(request.clone()).await.map(drop)
    })
    .await;
}

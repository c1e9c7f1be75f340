//! A topic's messages stay where its storage policy lets them.

use prost_types::FieldMask;
use proto::pubsub::{
    GetTopicRequest, MessageStoragePolicy, Subscription, Topic, UpdateTopicRequest,
};
use tonic::{Code, Status};

use crate::client::Client;
use crate::node::Node;

/// The region of a node on its own.
const HERE: &str = "local";

#[tokio::test]
async fn a_policy_of_this_region_is_kept_shown_and_taken_away() {
    let node = Node::start();
    let client = Client::new(&node);
    let topic = client.topic("kept").await;
    let created = update(&client, policy(&topic, &[HERE], true)).await;
    let shown = created.expect("the node is in that region");
    assert_eq!(shown, get(&client, &topic).await);
    assert_eq!(
        shown.message_storage_policy,
        policy(&topic, &[HERE], true).message_storage_policy
    );

    let reader = client
        .subscription("reader", &topic, Subscription::default())
        .await;
    client.publish(&topic, "key", &["one"]).await;
    client.publish(&topic, "", &["two"]).await;
    let received = client.pull_all(&reader, 2).await;
    client.acknowledge(&reader, &received).await;

    let bare = Topic {
        message_storage_policy: None,
        ..shown
    };
    let cleared = update(&client, bare)
        .await
        .expect("a policy can be taken away");
    assert_eq!(cleared.message_storage_policy, None);
}

#[tokio::test]
async fn what_the_cluster_can_not_keep_is_refused_and_changes_nothing() {
    let node = Node::start();
    let client = Client::new(&node);
    let topic = client.topic("kept").await;
    let before = get(&client, &topic).await;
    for regions in [&[][..], &["elsewhere"], &[HERE, "elsewhere"]] {
        let refused = update(&client, policy(&topic, regions, false)).await;
        assert_eq!(
            refused.unwrap_err().code(),
            Code::InvalidArgument,
            "{regions:?}"
        );
    }
    let mut wish = before.clone();
    wish.labels
        .insert("orderly-survival".into(), "region".into());
    let refused = update(&client, wish).await.unwrap_err();
    assert_eq!(refused.code(), Code::FailedPrecondition);
    assert!(refused.message().contains("add nodes"), "{refused}");
    assert_eq!(get(&client, &topic).await, before);
}

fn policy(topic: &str, regions: &[&str], enforce_in_transit: bool) -> Topic {
    Topic {
        name: topic.to_owned(),
        message_storage_policy: Some(MessageStoragePolicy {
            allowed_persistence_regions: regions.iter().map(|it| it.to_string()).collect(),
            enforce_in_transit,
        }),
        ..Topic::default()
    }
}

/// Sets the labels and the storage policy to what the topic has here.
async fn update(client: &Client, topic: Topic) -> Result<Topic, Status> {
    let paths = ["labels", "message_storage_policy"];
    let request = UpdateTopicRequest {
        topic: Some(topic),
        update_mask: Some(FieldMask {
            paths: paths.map(str::to_owned).into(),
        }),
    };
    let updated = client.publisher.clone().update_topic(request).await?;
    Ok(updated.into_inner())
}

async fn get(client: &Client, topic: &str) -> Topic {
    let request = GetTopicRequest {
        topic: topic.to_owned(),
    };
    let found = client.publisher.clone().get_topic(request).await;
    found.expect("the topic is there").into_inner()
}

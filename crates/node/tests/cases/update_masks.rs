//! An update changes what its mask names, all or nothing.

use std::collections::BTreeMap;

use prost_types::FieldMask;
use proto::pubsub::{GetSubscriptionRequest, Subscription, UpdateSubscriptionRequest};
use tonic::{Code, Status};

use crate::client::Client;
use crate::node::Node;

const FILTER: &str = "attributes:kind";

#[tokio::test]
async fn a_mask_with_something_fixed_changes_nothing() {
    let node = Node::start();
    let client = Client::new(&node);
    let before = create(&client).await;
    let masks: &[&[&str]] = &[
        &["filter"],
        &["labels", "filter"],
        &["enable_message_ordering"],
        &["topic"],
        &["name"],
        &["labels", "nonsense"],
        &[],
    ];
    for mask in masks {
        for filter in [FILTER, "attributes:other"] {
            let body = Subscription {
                filter: filter.into(),
                labels: labels("after"),
                ..before.clone()
            };
            let refused = update(&client, body, mask).await.unwrap_err();
            assert_eq!(refused.code(), Code::InvalidArgument, "{mask:?}");
            assert_eq!(get(&client, &before.name).await, before, "{mask:?}");
        }
    }
}

#[tokio::test]
async fn what_the_mask_does_not_name_is_ignored() {
    let node = Node::start();
    let client = Client::new(&node);
    let before = create(&client).await;
    let body = Subscription {
        name: before.name.clone(),
        filter: "attributes:other".into(),
        ack_deadline_seconds: 99,
        labels: labels("after"),
        ..Subscription::default()
    };
    let updated = update(&client, body, &["labels"]).await;
    let expected = Subscription {
        labels: labels("after"),
        ..before
    };
    assert_eq!(updated.expect("labels can be changed"), expected);
    assert_eq!(get(&client, &expected.name).await, expected);

    let body = Subscription {
        name: expected.name.clone(),
        ack_deadline_seconds: 20,
        ..Subscription::default()
    };
    let updated = update(&client, body, &["ack_deadline_seconds"]).await;
    let expected = Subscription {
        ack_deadline_seconds: 20,
        ..expected
    };
    assert_eq!(updated.expect("deadlines can be changed"), expected);
}

async fn create(client: &Client) -> Subscription {
    let topic = client.topic("orders").await;
    let rest = Subscription {
        filter: FILTER.into(),
        labels: labels("before"),
        ..Subscription::default()
    };
    let created = client.try_subscription("shipping", &topic, rest).await;
    created.expect("it is created")
}

async fn update(
    client: &Client,
    subscription: Subscription,
    mask: &[&str],
) -> Result<Subscription, Status> {
    let paths = mask.iter().map(|path| (*path).to_owned()).collect();
    let request = UpdateSubscriptionRequest {
        subscription: Some(subscription),
        update_mask: Some(FieldMask { paths }),
    };
    let updated = client.subscriber.clone().update_subscription(request).await;
    Ok(updated?.into_inner())
}

async fn get(client: &Client, name: &str) -> Subscription {
    let request = GetSubscriptionRequest {
        subscription: name.to_owned(),
    };
    let got = client.subscriber.clone().get_subscription(request).await;
    got.expect("it is there").into_inner()
}

fn labels(stage: &str) -> BTreeMap<String, String> {
    BTreeMap::from([("stage".to_owned(), stage.to_owned())])
}

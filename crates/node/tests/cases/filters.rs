//! Messages that a filter leaves out are never delivered, and never in the way.

use proto::pubsub::{PubsubMessage, Subscription};
use tonic::Code;

use crate::client::{Client, message, text, texts};
use crate::node::Node;

#[tokio::test]
async fn exactly_the_matching_messages_come() {
    const CASES: [(&str, &[&str]); 5] = [
        ("attributes:timezone", &["1"]),
        ("NOT attributes:timezone", &["2", "3", "4"]),
        (r#"attributes.lang != "en""#, &["3", "4"]),
        (r#"hasPrefix(attributes.name,"co")"#, &["1", "4"]),
        (
            r#"(attributes.lang="en" OR attributes.lang="fr") AND NOT attributes.name="com""#,
            &["2", "3"],
        ),
    ];
    let node = Node::start();
    let client = Client::new(&node);
    let topic = client.topic("pages").await;
    let mut subscriptions = Vec::new();
    for (number, (filter, _)) in CASES.iter().enumerate() {
        let id = format!("filtered-{number}");
        subscriptions.push(client.subscription(&id, &topic, filtered(filter)).await);
    }
    let messages = [
        with("1", &[("lang", "en"), ("name", "com"), ("timezone", "UTC")]),
        with("2", &[("lang", "en"), ("name", "net")]),
        with("3", &[("lang", "fr"), ("name", "org")]),
        with("4", &[("name", "co")]),
    ];
    client.try_publish(&topic, &messages).await.unwrap();
    for (subscription, (filter, expected)) in subscriptions.iter().zip(CASES) {
        let pulled = client.pull_all(subscription, expected.len()).await;
        assert_eq!(texts(&pulled), expected, "{filter}");
        client.acknowledge(subscription, &pulled).await;
    }
    for subscription in &subscriptions {
        client.pull_nothing(subscription).await;
    }
}

#[tokio::test]
async fn what_is_left_out_never_blocks_its_key() {
    const MESSAGES: usize = 200;
    let node = Node::start();
    let client = Client::new(&node);
    let topic = client.topic("numbers").await;
    let filter = filtered("attributes:even");
    let subscription = client.subscription("even", &topic, filter).await;
    let numbers: Vec<_> = (0..MESSAGES)
        .map(|number| {
            let even: &[_] = if number % 2 == 0 {
                &[("even", "")]
            } else {
                &[]
            };
            with(&number.to_string(), even)
        })
        .collect();
    client.try_publish(&topic, &numbers).await.unwrap();
    let mut come = Vec::new();
    while come.len() < MESSAGES / 2 {
        // One at a time, so that each of them stands behind one that is left out.
        let pulled = client.pull(&subscription, 1).await;
        come.extend(pulled.iter().map(|one| text(one).to_owned()));
        client.acknowledge(&subscription, &pulled).await;
    }
    let evens: Vec<_> = (0..MESSAGES)
        .step_by(2)
        .map(|even| even.to_string())
        .collect();
    assert_eq!(come, evens);
    client.pull_nothing(&subscription).await;
}

#[tokio::test]
async fn a_filter_that_is_none_is_refused() {
    let node = Node::start();
    let client = Client::new(&node);
    let topic = client.topic("pages").await;
    let too_long = format!(r#"attributes.k="{}""#, "x".repeat(256));
    for filter in [
        r#"attributes.lang="en" AND attributes:name OR attributes:x"#,
        r#"lang="en""#,
        "attributes.lang=en",
        r#"attributes.lang="en" and attributes:name"#,
        r#"hasSuffix(attributes.lang,"n")"#,
        "(attributes:lang",
        &too_long,
    ] {
        let refused = client.try_subscription("sub", &topic, filtered(filter));
        let refused = refused.await.unwrap_err();
        assert_eq!(refused.code(), Code::InvalidArgument, "{filter}");
    }
}

/// An ordered subscription with a filter.
fn filtered(filter: &str) -> Subscription {
    Subscription {
        filter: filter.into(),
        ..crate::client::ordered()
    }
}

/// A message of the one key, with attributes.
fn with(text: &str, attributes: &[(&str, &str)]) -> PubsubMessage {
    let owned = |(key, value): &(&str, &str)| ((*key).to_owned(), (*value).to_owned());
    PubsubMessage {
        attributes: attributes.iter().map(owned).collect(),
        ..message("key", text)
    }
}

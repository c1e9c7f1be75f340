//! The longest names and keys, and the largest requests with ack ids.

use tonic::Code;

use crate::client::{Client, ack_ids, message};
use crate::node::Node;

/// What one client sends in a request at most.
const IDS: usize = 3_000;
/// What a request with ack ids may weigh.
const REQUEST_BYTES_MAX: usize = 524_288;

#[tokio::test]
async fn three_thousand_ids_fit_into_one_request() {
    let node = Node::start();
    let client = Client::new(&node);
    let topic = client.topic(&"t".repeat(255)).await;
    let subscription = client
        .subscription(&"s".repeat(255), &topic, Default::default())
        .await;
    let key = "k".repeat(1_024);
    let messages = vec![message(&key, "x"); 1_000];
    for _ in 0..IDS / messages.len() {
        let published = client.try_publish(&topic, &messages).await;
        assert_eq!(published.expect("it is published").len(), messages.len());
    }
    let large = client.with_large_responses();
    let received = large.pull_all(&subscription, IDS).await;
    let ids = ack_ids(&received);
    let longest = ids.iter().map(String::len).max();
    assert!(longest <= Some(160), "{longest:?}");

    // More than a request may have, with ids that are all good: none of them counts.
    let too_many = REQUEST_BYTES_MAX / ids[0].len() + 1;
    let too_many = ids.iter().cycle().take(too_many).cloned().collect();
    let refused = client.try_acknowledge(&subscription, too_many).await;
    assert_eq!(refused.unwrap_err().code(), Code::InvalidArgument);
    let first = &received[..1];
    client.nack(&subscription, first).await;
    let again = client.pull(&subscription, 1).await;
    assert_eq!(again[0].message, first[0].message);

    let mut ids = ids;
    ids[0].clone_from(&again[0].ack_id);
    let acknowledged = client.try_acknowledge(&subscription, ids).await;
    acknowledged.expect("so many ids are fine");
    client.pull_nothing(&subscription).await;
}

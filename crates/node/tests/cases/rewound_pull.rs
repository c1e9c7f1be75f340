//! A consumer dies with messages of a key: the next one gets the first of them, and no other until
//! it has acknowledged it.

use std::time::Duration;

use crate::client::{Client, SOON, ordered, text, texts};
use crate::node::Node;

/// The deadline of the subscription, which the dead consumer's leases have at most.
const LEASES: Duration = Duration::from_secs(10);

#[tokio::test]
async fn after_a_lost_pull_it_is_always_the_first_message() {
    let node = Node::start();
    let client = Client::new(&node);
    let topic = client.topic("orders").await;
    let subscription = client.subscription("shipping", &topic, ordered()).await;
    client
        .publish(&topic, "key", &["1", "2", "3", "4", "5"])
        .await;

    let dead = Client::new(&node);
    let pulled = dead.pull(&subscription, 5).await;
    assert_eq!(texts(&pulled), ["1", "2", "3", "4", "5"]);
    drop(dead);

    let again = client.try_pull(&subscription, 1, LEASES + SOON).await;
    let mut again = again.expect("a pull is answered");
    for _ in 0..20 {
        assert_eq!(texts(&again), ["1"]);
        client.nack(&subscription, &again).await;
        again = client.pull(&subscription, 1).await;
    }
    for number in 1..=5 {
        assert_eq!(text(&again[0]), number.to_string());
        client.acknowledge(&subscription, &again).await;
        if number < 5 {
            again = client.pull(&subscription, 1).await;
        }
    }
}

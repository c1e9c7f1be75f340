//! A Pull is answered before its client gives up, and a client that gave up keeps nothing.

use std::collections::HashMap;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{Instant, interval, timeout_at};

use crate::client::{Client, SOON, text};
use crate::node::Node;

#[tokio::test]
async fn an_empty_pull_is_answered_in_time() {
    let node = Node::start();
    let client = Client::new(&node);
    let topic = client.topic("orders").await;
    let subscription = client
        .subscription("shipping", &topic, Default::default())
        .await;
    for millis in [200, 1_000, 5_000] {
        let deadline = Duration::from_millis(millis);
        let begun = Instant::now();
        let pulled = client.try_pull(&subscription, 10, deadline).await;
        assert_eq!(pulled.expect("empty, and no error"), [], "{deadline:?}");
        assert!(begun.elapsed() < deadline, "{:?}", begun.elapsed());
        // It does wait, or clients would ask again and again.
        assert!(begun.elapsed() > deadline / 2, "{:?}", begun.elapsed());
    }
}

#[tokio::test]
async fn a_pull_that_waits_is_answered_by_a_publish() {
    let node = Node::start();
    let client = Client::new(&node);
    let topic = client.topic("orders").await;
    let subscription = client
        .subscription("shipping", &topic, Default::default())
        .await;
    let waiting = {
        let client = client.clone();
        tokio::spawn(async move { client.pull(&subscription, 1).await })
    };
    client.publish(&topic, "", &["paid"]).await;
    let begun = Instant::now();
    let pulled = waiting.await.expect("the pull is answered");
    assert_eq!(text(&pulled[0]), "paid");
    assert!(
        begun.elapsed() < Duration::from_secs(1),
        "{:?}",
        begun.elapsed()
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_impatient_consumers_miss_nothing() {
    const MESSAGES: usize = 10;
    const CONSUMERS: usize = 10;
    let node = Node::start();
    let client = Client::new(&node);
    let topic = client.topic("orders").await;
    let subscription = client
        .subscription("shipping", &topic, Default::default())
        .await;
    let (sender, mut received) = mpsc::unbounded_channel();
    let mut consumers = JoinSet::new();
    for _ in 0..CONSUMERS {
        let (client, subscription) = (Client::new(&node), subscription.clone());
        let sender = sender.clone();
        consumers.spawn(async move {
            loop {
                let wait = Duration::from_secs(1);
                let pulled = client.try_pull(&subscription, 10, wait).await;
                for one in pulled.expect("a pull is answered in time") {
                    sender
                        .send((text(&one).to_owned(), Instant::now()))
                        .unwrap();
                    client.acknowledge(&subscription, &[one]).await;
                }
            }
        });
    }
    let mut published = HashMap::new();
    let mut pace = interval(Duration::from_secs(1));
    for number in 0..MESSAGES {
        pace.tick().await;
        published.insert(number.to_string(), Instant::now());
        client.publish(&topic, "", &[&number.to_string()]).await;
    }
    for _ in 0..MESSAGES {
        let next = timeout_at(Instant::now() + SOON, received.recv()).await;
        let (text, at) = next.expect("each is delivered").expect("consumers go on");
        let took = at - published.remove(&text).expect("each is delivered once");
        assert!(took < Duration::from_secs(2), "{text} took {took:?}");
    }
    let ended = consumers.try_join_next();
    assert!(ended.is_none(), "a consumer stopped: {ended:?}");
}

#[tokio::test]
async fn a_cancelled_pull_keeps_nothing_from_the_next_one() {
    let node = Node::start();
    let client = Client::new(&node);
    let topic = client.topic("orders").await;
    let subscription = client
        .subscription("shipping", &topic, Default::default())
        .await;
    for round in 0..20 {
        let cancelled = client.try_pull(&subscription, 1, SOON);
        let cancelled = timeout_at(Instant::now() + Duration::from_millis(50), cancelled).await;
        assert!(cancelled.is_err(), "there is nothing to answer with");
        let expected = round.to_string();
        client.publish(&topic, "", &[&expected]).await;
        let begun = Instant::now();
        let pulled = client.pull(&subscription, 1).await;
        assert_eq!(text(&pulled[0]), expected);
        assert!(
            begun.elapsed() < Duration::from_secs(2),
            "{:?}",
            begun.elapsed()
        );
        client.acknowledge(&subscription, &pulled).await;
    }
}

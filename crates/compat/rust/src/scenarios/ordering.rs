//! Ordering keys through the streaming subscriber: in order, in bulk, and after a nack.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result};
use tokio::time::timeout;

use crate::sequence;
use crate::stage::{PATIENCE, Stage, close, expect_equal, next, number, numbered};

/// What has come of each key, in the order of arrival.
type Received = BTreeMap<String, Vec<u64>>;

pub async fn publish_ordered(stage: Stage) -> Result<()> {
    let keys = ["red", "green", "blue"];
    let topic = stage.topic("topic").await?;
    let name = stage.subscription(&topic, "sub").await?;

    publish_to_all(&stage, &topic, &keys, 20).await?;
    let received = receive(&stage, &name, 60).await?;
    for key in keys {
        expect_equal(&received[key], &Vec::from_iter(0..20), key)?;
    }
    Ok(())
}

pub async fn stream(stage: Stage) -> Result<()> {
    const PER_KEY: u64 = 200;
    let keys: Vec<String> = (0..50).map(|index| format!("key-{index}")).collect();
    let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
    let topic = stage.topic("topic").await?;
    let name = stage.subscription(&topic, "sub").await?;

    let (published, received) = tokio::join!(
        publish_to_all(&stage, &topic, &keys, PER_KEY),
        receive(&stage, &name, 10_000)
    );
    expect_equal(published?.len(), 10_000, "different message ids")?;
    let received = received?;
    for &key in &keys {
        expect_equal(&received[key], &Vec::from_iter(0..PER_KEY), key)?;
    }

    // A new message of a key comes first only if every earlier one of the key is acked.
    for &key in &keys {
        stage.publish(&topic, key, [PER_KEY]).await?;
    }
    let received = receive(&stage, &name, keys.len()).await?;
    for &key in &keys {
        expect_equal(received.get(key), Some(&vec![PER_KEY]), "backlog")?;
    }
    Ok(())
}

/// Publishes `0..per_key` under each key, all at once; the ids of the messages.
async fn publish_to_all(
    stage: &Stage,
    topic: &str,
    keys: &[&str],
    per_key: u64,
) -> Result<BTreeSet<String>> {
    let publisher = stage.publisher(topic).await?;
    let mut accepted = Vec::new();
    for number in 0..per_key {
        accepted.extend(
            keys.iter()
                .map(|key| publisher.publish(numbered(key, number))),
        );
    }
    let mut message_ids = BTreeSet::new();
    for accepted in accepted {
        message_ids.insert(timeout(PATIENCE, accepted).await.context("publish")??);
    }
    Ok(message_ids)
}

/// Receives and acks this many messages through a stream of its own.
async fn receive(stage: &Stage, subscription: &str, count: usize) -> Result<Received> {
    let mut stream = stage.subscriber.subscribe(subscription).build();
    let mut received = Received::new();
    for _ in 0..count {
        let (message, handler) = next(&mut stream).await?;
        let of_key = received.entry(message.ordering_key.clone()).or_default();
        of_key.push(number(&message)?);
        handler.ack();
    }
    close(stream).await?;
    Ok(received)
}

/// The third of five is refused once: it comes again, and the later ones after it.
pub async fn nack(stage: Stage) -> Result<()> {
    let topic = stage.topic("topic").await?;
    let name = stage.subscription(&topic, "sub").await?;
    let mut stream = stage.subscriber.subscribe(&name).build();

    stage.publish(&topic, "key", 1..=5).await?;
    let mut received = Vec::new();
    let mut refused = false;
    while !received.ends_with(&[3, 4, 5]) || received.iter().filter(|&&n| n == 3).count() < 2 {
        let (message, handler) = next(&mut stream)
            .await
            .with_context(|| format!("after {received:?}"))?;
        received.push(number(&message)?);
        if received.ends_with(&[3]) && !refused {
            refused = true;
            handler.nack();
        } else {
            handler.ack();
        }
    }
    close(stream).await?;
    sequence::check(&received, 1)?;
    Ok(())
}

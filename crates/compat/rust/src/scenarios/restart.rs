//! `kill -9` of the server in the middle of publishing and consuming.

use std::collections::{BTreeMap, BTreeSet};
use std::env;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use google_cloud_pubsub::client::Publisher;
use google_cloud_pubsub::publisher::PublishFuture;
use google_cloud_pubsub::subscriber::MessageStream;
use tokio::process::Command;
use tokio::time::timeout;

use crate::sequence;
use crate::stage::{Stage, close, expect_equal, number, numbered};

const KEYS: [&str; 4] = ["red", "green", "blue", "black"];

/// Messages of each key that are published before the restart, during it and after it.
const PER_PHASE: u64 = 200;
const PER_KEY: u64 = 3 * PER_PHASE;

/// How long the server may take to come back and the clients to find it again.
const RECOVERY: Duration = Duration::from_secs(90);

pub async fn restart(stage: Stage) -> Result<()> {
    let topic = stage.topic("topic").await?;
    let name = stage.subscription(&topic, "sub").await?;
    let publisher = stage.publisher(&topic).await?;
    let mut stream = stage.subscriber.subscribe(&name).build();

    let (published, received) = tokio::join!(
        publish_through_restart(&publisher),
        timeout(RECOVERY, receive_all(&mut stream))
    );
    published?;
    let received = received.context("not all messages came")??;
    close(stream).await?;
    for (key, numbers) in received {
        let highest = sequence::check(&numbers, 0).with_context(|| format!("key {key}"))?;
        expect_equal(highest, PER_KEY - 1, &key)?;
    }
    Ok(())
}

/// Publishes to every key before, during and after the restart; all of it must be accepted.
async fn publish_through_restart(publisher: &Publisher) -> Result<()> {
    for accepted in publish(publisher, 0) {
        accepted.await?;
    }
    let restarting = tokio::spawn(restart_server());
    let during = publish(publisher, PER_PHASE);
    restarting.await??;
    let after = publish(publisher, 2 * PER_PHASE);
    for accepted in during.into_iter().chain(after) {
        timeout(RECOVERY, accepted).await.context("publish")??;
    }
    Ok(())
}

fn publish(publisher: &Publisher, start: u64) -> Vec<PublishFuture> {
    (start..start + PER_PHASE)
        .flat_map(|number| KEYS.map(|key| publisher.publish(numbered(key, number))))
        .collect()
}

/// Receives until every message of every key has come; what came of each key, in order.
async fn receive_all(stream: &mut MessageStream) -> Result<BTreeMap<String, Vec<u64>>> {
    let mut received: BTreeMap<String, Vec<u64>> = BTreeMap::new();
    let mut missing: BTreeSet<(String, u64)> = (0..PER_KEY)
        .flat_map(|number| KEYS.map(|key| (key.to_owned(), number)))
        .collect();
    while !missing.is_empty() {
        let (message, handler) = stream.next().await.context("the stream ended")??;
        let number = number(&message)?;
        missing.remove(&(message.ordering_key.clone(), number));
        received
            .entry(message.ordering_key)
            .or_default()
            .push(number);
        handler.ack();
    }
    Ok(received)
}

async fn restart_server() -> Result<()> {
    let command = env::var("ORDERLY_RESTART")?;
    let status = Command::new("sh").args(["-c", &command]).status().await?;
    ensure!(status.success(), "the server did not come back: {status}");
    Ok(())
}

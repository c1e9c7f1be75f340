//! `kill -9` of the server in the middle of publishing and consuming.

use std::collections::BTreeMap;
use std::env;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use google_cloud_pubsub::client::Publisher;
use google_cloud_pubsub::publisher::PublishFuture;
use google_cloud_pubsub::subscriber::MessageStream;
use tokio::process::Command;
use tokio::sync::watch;
use tokio::time::timeout;

use crate::sequence;
use crate::stage::{Stage, close, expect_equal, number, numbered};

const KEYS: u64 = 10;

/// Messages that each key gets in one round.
const PER_ROUND: u64 = 5;

/// Rounds before the restart begins, and again after it is over.
const ROUNDS: u64 = 10;

/// For the server to come back, and for a client that may wait a minute between two tries.
const RECOVERY: Duration = Duration::from_secs(120);

/// What came of each key, in the order of arrival.
type Received = BTreeMap<String, Vec<u64>>;

pub async fn restart(stage: Stage) -> Result<()> {
    let topic = stage.topic("topic").await?;
    let name = stage.subscription(&topic, "sub").await?;
    let publisher = stage.publisher(&topic).await?;
    let mut stream = stage.subscriber.subscribe(&name).build();

    // How many messages each key has got in all, once that is known.
    let (total, known) = watch::channel(None);
    let publishing = async {
        let per_key = publish_through_restart(&publisher).await?;
        total.send_replace(Some(per_key));
        Ok(per_key)
    };
    let (per_key, received) = tokio::try_join!(publishing, receive_all(&mut stream, known))?;
    close(stream).await?;
    for (key, numbers) in received {
        let highest = sequence::check(&numbers, 0).with_context(|| format!("key {key}"))?;
        expect_equal(highest, per_key - 1, &key)?;
    }
    Ok(())
}

/// Publishes round after round while the server is killed and comes back; messages per key.
async fn publish_through_restart(publisher: &Publisher) -> Result<u64> {
    let mut published = 0;
    for _ in 0..ROUNDS {
        publish_round(publisher, &mut published).await?;
    }
    let restarting = tokio::spawn(restart_server());
    while !restarting.is_finished() {
        publish_round(publisher, &mut published).await?;
    }
    restarting.await??;
    for _ in 0..ROUNDS {
        publish_round(publisher, &mut published).await?;
    }
    Ok(published)
}

/// Returns when the server has accepted all messages of the round.
async fn publish_round(publisher: &Publisher, published: &mut u64) -> Result<()> {
    let numbers = *published..*published + PER_ROUND;
    let accepted: Vec<PublishFuture> = numbers
        .flat_map(|number| (0..KEYS).map(move |key| numbered(&format!("key-{key}"), number)))
        .map(|message| publisher.publish(message))
        .collect();
    for accepted in accepted {
        timeout(RECOVERY, accepted).await.context("publish")??;
    }
    *published += PER_ROUND;
    Ok(())
}

/// Receives until every message of every key has come.
async fn receive_all(
    stream: &mut MessageStream,
    mut total: watch::Receiver<Option<u64>>,
) -> Result<Received> {
    let mut received = Received::new();
    loop {
        let known = *total.borrow_and_update();
        if known.is_some_and(|per_key| is_complete(&received, per_key)) {
            return Ok(received);
        }
        tokio::select! {
            next = timeout(RECOVERY, stream.next()) => {
                let next = next.with_context(|| format!("nothing came in {RECOVERY:?}"))?;
                let (message, handler) = next.context("the stream ended")??;
                let of_key = received.entry(message.ordering_key.clone()).or_default();
                of_key.push(number(&message)?);
                handler.ack();
            }
            Ok(()) = total.changed() => {}
        }
    }
}

/// Whether the last message of every key has come: by the rule of the sequence, so have the others.
fn is_complete(received: &Received, per_key: u64) -> bool {
    let has_last = |numbers: &Vec<u64>| numbers.contains(&(per_key - 1));
    received.len() as u64 == KEYS && received.values().all(has_last)
}

async fn restart_server() -> Result<()> {
    let command = env::var("ORDERLY_RESTART")?;
    let status = Command::new("sh").args(["-c", &command]).status().await?;
    ensure!(status.success(), "the server did not come back: {status}");
    Ok(())
}

//! Leases and policies: expiry, exactly-once, flow control, dead letter, filter.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use google_cloud_pubsub::error::AckError;
use google_cloud_pubsub::model::Message;
use google_cloud_pubsub::subscriber::handler::Handler;
use tokio::time::timeout;

use crate::setup::{DeadLetterPolicy, Subscription};
use crate::stage::{PATIENCE, PROJECT, Stage, close, expect_equal, next, number, numbered};

/// The shortest lease that the client takes.
const LEASE: Duration = Duration::from_secs(10);

/// A message that is not acked comes back once its 10 s are over, with its successor behind it.
pub async fn expiry(stage: Stage) -> Result<()> {
    let topic = stage.topic("topic").await?;
    let name = stage.subscription(&topic, "sub").await?;
    let subscribe = stage.subscriber.subscribe(&name);
    // No lease is ever extended.
    let mut stream = subscribe
        .set_max_lease(Duration::ZERO)
        .set_max_lease_extension(LEASE)
        .set_max_outstanding_messages(1)
        .build();

    stage.publish(&topic, "key", [1, 2]).await?;
    let (first, unfinished) = next(&mut stream).await?;
    let came = Instant::now();
    let (again, handler) = next(&mut stream).await?;
    let waited = came.elapsed();
    expect_equal(number(&first)?, 1, "first delivery")?;
    expect_equal(number(&again)?, 1, "delivery after the deadline")?;
    expect_equal(&again.message_id, &first.message_id, "message id")?;
    let allowed = LEASE - Duration::from_millis(500)..LEASE + Duration::from_secs(5);
    ensure!(allowed.contains(&waited), "redelivered after {waited:?}");

    handler.ack();
    let (successor, handler) = next(&mut stream).await?;
    expect_equal(number(&successor)?, 2, "after the ack")?;
    handler.ack();
    drop(unfinished);
    close(stream).await
}

/// The ack of a lease that was lost is refused; the ack of the redelivery is confirmed.
pub async fn exactly_once(stage: Stage) -> Result<()> {
    let topic = stage.topic("topic").await?;
    let settings = Subscription {
        enable_exactly_once_delivery: true,
        ..Subscription::default()
    };
    let name = stage.subscription_with(&topic, "sub", settings).await?;
    let subscribe = stage.subscriber.subscribe(&name);
    let mut stream = subscribe
        .set_max_lease(Duration::from_secs(1))
        .set_max_lease_extension(LEASE)
        .build();

    stage.publish(&topic, "key", [1]).await?;
    let (first, late) = next(&mut stream).await?;
    let (again, in_time) = next(&mut stream).await?;
    expect_equal(
        &again.message_id,
        &first.message_id,
        "message id of the redelivery",
    )?;
    match confirmed(late).await {
        Err(AckError::LeaseExpired | AckError::Rpc { .. }) => {}
        other => bail!("ack after the lease: {other:?}"),
    }
    confirmed(in_time).await.context("ack of the redelivery")?;

    // An acked message never comes again, so the next one is what comes next.
    stage.publish(&topic, "key", [2]).await?;
    let (next_message, handler) = next(&mut stream).await?;
    expect_equal(number(&next_message)?, 2, "after the confirmed ack")?;
    confirmed(handler).await?;
    close(stream).await
}

async fn confirmed(handler: Handler) -> std::result::Result<(), AckError> {
    match handler {
        Handler::ExactlyOnce(handler) => handler.confirmed_ack().await,
        other => panic!("the stream does not say that delivery is exactly-once: {other:?}"),
    }
}

/// With a limit of five there are never more than five unfinished messages.
pub async fn flow_control(stage: Stage) -> Result<()> {
    const COUNT: u64 = 20;
    let topic = stage.topic("topic").await?;
    let name = stage.subscription(&topic, "sub").await?;
    for number in 0..COUNT {
        stage
            .publish(&topic, &format!("key-{number}"), [number])
            .await?;
    }
    let subscribe = stage.subscriber.subscribe(&name);
    let mut stream = subscribe.set_max_outstanding_messages(5).build();

    let mut unfinished = VecDeque::new();
    let mut received = Vec::new();
    for _ in 0..COUNT {
        if unfinished.len() == 5 {
            let sixth = timeout(Duration::from_millis(300), stream.next()).await;
            ensure!(sixth.is_err(), "a sixth message came: {sixth:?}");
            let oldest: Handler = unfinished.pop_front().context("five are unfinished")?;
            oldest.ack();
        }
        let (message, handler) = next(&mut stream).await?;
        received.push(number(&message)?);
        unfinished.push_back(handler);
    }
    unfinished.into_iter().for_each(Handler::ack);
    close(stream).await?;
    received.sort_unstable();
    expect_equal(received, Vec::from_iter(0..COUNT), "all messages")
}

/// After five attempts a message moves to the dead-letter topic, and its key flows on.
pub async fn dead_letter(stage: Stage) -> Result<()> {
    const POISON: u64 = 1;
    let topic = stage.topic("topic").await?;
    let graveyard = stage.topic("graveyard").await?;
    let buried_in = stage.subscription(&graveyard, "buried").await?;
    let settings = Subscription {
        dead_letter_policy: Some(DeadLetterPolicy {
            dead_letter_topic: graveyard.clone(),
            max_delivery_attempts: 5,
        }),
        ..Subscription::default()
    };
    let name = stage.subscription_with(&topic, "sub", settings).await?;

    let publisher = stage.publisher(&topic).await?;
    let poison = numbered("key", POISON).set_attributes([("colour", "red")]);
    let accepted = [
        publisher.publish(poison),
        publisher.publish(numbered("key", 2)),
    ];
    for accepted in accepted {
        timeout(PATIENCE, accepted).await??;
    }
    let mut stream = stage.subscriber.subscribe(&name).build();
    let mut attempts = Vec::new();
    loop {
        let (message, handler) = next(&mut stream)
            .await
            .with_context(|| format!("after attempts {attempts:?}"))?;
        if number(&message)? == POISON {
            attempts.push(handler.delivery_attempt());
            handler.nack();
        } else {
            let is_last = attempts.len() == 5;
            handler.ack();
            if is_last {
                break;
            }
        }
    }
    close(stream).await?;
    expect_equal(attempts, [1, 2, 3, 4, 5].map(Some), "attempts")?;

    let mut stream = stage.subscriber.subscribe(&buried_in).build();
    let (buried, handler) = next(&mut stream).await.context("dead letter")?;
    handler.ack();
    close(stream).await?;
    expect_equal(number(&buried)?, POISON, "data of the dead letter")?;
    expect_equal(&buried.ordering_key, "key", "key of the dead letter")?;
    expect_origin(&buried, &name)
}

/// A dead letter tells where it comes from, beside its own attributes.
fn expect_origin(buried: &Message, subscription: &str) -> Result<()> {
    let attribute = |name: &str| buried.attributes.get(name).map(String::as_str);
    let origin = |name: &str| attribute(&format!("CloudPubSubDeadLetterSource{name}"));
    let short_name = subscription.rsplit('/').next();
    expect_equal(attribute("colour"), Some("red"), "own attribute")?;
    expect_equal(origin("DeliveryCount"), Some("5"), "delivery count")?;
    expect_equal(origin("Subscription"), short_name, "source subscription")?;
    expect_equal(
        origin("SubscriptionProject"),
        Some(PROJECT),
        "source project",
    )?;
    let published = origin("TopicPublishTime").context("no publish time")?;
    ensure!(
        published.ends_with("+00:00"),
        "zone of publish time {published}"
    );
    Ok(())
}

/// Only matching messages come; the others neither block their key nor stay behind.
pub async fn filter(stage: Stage) -> Result<()> {
    let topic = stage.topic("topic").await?;
    let filtered = |filter: &str| Subscription {
        filter: filter.to_owned(),
        ..Subscription::default()
    };
    let english = filtered("attributes.lang = \"en\"");
    let name = stage.subscription_with(&topic, "sub", english).await?;

    let publisher = stage.publisher(&topic).await?;
    for number in 1..=7 {
        let language = if number % 2 == 1 { "en" } else { "fr" };
        let message = numbered("key", number).set_attributes([("lang", language)]);
        timeout(PATIENCE, publisher.publish(message)).await??;
    }
    let mut stream = stage.subscriber.subscribe(&name).build();
    let mut received = Vec::new();
    while received.last() != Some(&7) {
        let (message, handler) = next(&mut stream).await?;
        received.push(number(&message)?);
        handler.ack();
    }
    close(stream).await?;
    expect_equal(received, [1, 3, 5, 7], "matching messages")?;

    let malformed = filtered("lang = en");
    let refused = stage.subscription_with(&topic, "invalid", malformed).await;
    let code = refused.err().map(|status| status.code());
    expect_equal(code, Some(tonic::Code::InvalidArgument), "malformed filter")
}

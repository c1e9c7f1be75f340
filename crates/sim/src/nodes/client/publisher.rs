//! Publishes, one request at a time, with keys and without.

use std::time::Duration;

use model::MessageId;
use proto::pubsub::publisher_client::PublisherClient;
use proto::pubsub::{PublishRequest, PubsubMessage};
use tokio::sync::watch;
use tokio::time::sleep;

use super::{AGAIN_AFTER, Endpoints, Phase, TOPIC, timed};
use crate::chance::Chance;
use crate::history::{Key, Value, What};
use crate::nodes::recorder::Recorder;

/// Publishes until the load is over. Its keys are its own: what it sends next of a key it sends
/// after the answer to what it sent before.
pub(in crate::nodes) async fn publish(
    endpoints: Endpoints,
    recorder: Recorder,
    keys: Vec<Key>,
    every: Duration,
    mut chance: Chance,
    mut phase: watch::Receiver<Phase>,
) {
    let begun = phase.wait_for(|phase| *phase >= Phase::Load).await;
    begun.expect("the simulation holds the sender");
    while *phase.borrow() == Phase::Load {
        sleep(chance.between(Duration::ZERO, 2 * every)).await;
        let key = keys[chance.below(keys.len() as u64) as usize].clone();
        let count = 1 + chance.below(3);
        if !publish_some(&endpoints, &recorder, &key, count).await {
            endpoints.next();
            sleep(AGAIN_AFTER).await;
        }
    }
}

/// Whether it was answered OK. Any other answer leaves open whether the messages are stored.
async fn publish_some(endpoints: &Endpoints, recorder: &Recorder, key: &Key, count: u64) -> bool {
    let values: Vec<_> = (0..count).map(|_| recorder.value()).collect();
    let messages: Vec<_> = values.iter().map(|value| message(key, *value)).collect();
    let call = recorder.call();
    recorder.event(What::PublishInvoked {
        call,
        key: key.clone(),
        values,
    });
    let request = PublishRequest {
        topic: TOPIC.to_owned(),
        messages: proto::wire::encode_all(&messages),
    };
    let mut client = PublisherClient::new(endpoints.channel());
    let answer = match client.publish(timed(request)).await {
        Ok(answer) => answer.into_inner(),
        Err(status) => {
            recorder.say(format!("{call:?} failed: {status}"));
            return false;
        }
    };
    let ids = answer.message_ids;
    let ids = ids.iter().map(|id| message_id(id)).collect();
    recorder.event(What::PublishOk { call, ids });
    true
}

fn message(key: &Key, value: Value) -> PubsubMessage {
    PubsubMessage {
        data: value.0.to_string().into(),
        ordering_key: key.to_string(),
        ..PubsubMessage::default()
    }
}

pub(super) fn message_id(text: &str) -> MessageId {
    MessageId(text.parse().expect("message ids are numbers"))
}

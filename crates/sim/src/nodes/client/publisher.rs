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

/// Keeps publishing.
pub(in crate::nodes) struct Publisher {
    pub(in crate::nodes) endpoints: Endpoints,
    pub(in crate::nodes) recorder: Recorder,
    /// Its keys are its own: what it sends next of a key it sends after the answer to what it sent
    /// before.
    pub(in crate::nodes) keys: Vec<Key>,
    /// Messages that one request has at most: all of one key.
    pub(in crate::nodes) batch_max: u64,
    pub(in crate::nodes) every: Duration,
    pub(in crate::nodes) chance: Chance,
    pub(in crate::nodes) phase: watch::Receiver<Phase>,
}

impl Publisher {
    /// Publishes until the load is over.
    pub(in crate::nodes) async fn publish(mut self) {
        let begun = self.phase.wait_for(|phase| *phase >= Phase::Load).await;
        begun.expect("the simulation holds the sender");
        while *self.phase.borrow() == Phase::Load {
            sleep(self.chance.between(Duration::ZERO, 2 * self.every)).await;
            if !self.publish_some().await {
                self.endpoints.next();
                sleep(AGAIN_AFTER).await;
            }
        }
    }

    /// Whether it was answered OK. Any other answer leaves open whether the messages are stored.
    async fn publish_some(&mut self) -> bool {
        let key = self.keys[self.chance.below(self.keys.len() as u64) as usize].clone();
        let count = 1 + self.chance.below(self.batch_max);
        let values: Vec<_> = (0..count).map(|_| self.recorder.value()).collect();
        let messages: Vec<_> = values.iter().map(|value| message(&key, *value)).collect();
        let call = self.recorder.call();
        self.recorder
            .event(What::PublishInvoked { call, key, values });
        let request = PublishRequest {
            topic: TOPIC.to_owned(),
            messages: proto::wire::encode_all(&messages),
        };
        let mut client = PublisherClient::new(self.endpoints.channel());
        let answer = match client.publish(timed(request)).await {
            Ok(answer) => answer.into_inner(),
            Err(status) => {
                self.recorder.say(format!("{call:?} failed: {status}"));
                return false;
            }
        };
        let ids = answer.message_ids;
        let ids = ids.iter().map(|id| message_id(id)).collect();
        self.recorder.event(What::PublishOk { call, ids });
        true
    }
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

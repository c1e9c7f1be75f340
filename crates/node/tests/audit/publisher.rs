//! Publishes, and writes down what was answered.

use std::sync::Arc;
use std::time::Duration;

use model::MessageId;
use proto::pubsub::publisher_client::PublisherClient;
use proto::pubsub::{PublishRequest, PubsubMessage};
use sim::history::{Key, Value, What};
use tokio::sync::watch;
use tokio::time::{MissedTickBehavior, interval, timeout};
use tonic::transport::Channel;
use tonic::{Request, Status};

use super::recorder::Recorder;
use super::way::Way;

/// The deadline of a publish.
const CALL_MAX: Duration = Duration::from_secs(2);
/// Messages of one publish.
const BATCH: usize = 3;

/// Publishes to each key in turn, one request at a time, until it is stopped. After a failure the
/// key gets the next messages over whichever node is ready.
pub(super) async fn publish(
    recorder: Arc<Recorder>,
    way: Way,
    topic: String,
    keys: Vec<Key>,
    every: Duration,
    stop: watch::Receiver<bool>,
) {
    let mut client = PublisherClient::new(way.channel().await);
    let mut pace = interval(every);
    pace.set_missed_tick_behavior(MissedTickBehavior::Delay);
    for key in keys.iter().cycle() {
        pace.tick().await;
        while !*stop.borrow() {
            match attempt(&recorder, &mut client, &topic, key).await {
                Ok(()) => break,
                Err(_) => client = PublisherClient::new(way.channel().await),
            }
        }
        if *stop.borrow() {
            return;
        }
    }
}

/// Any failure leaves open whether the messages are stored: the node may have died after.
async fn attempt(
    recorder: &Recorder,
    client: &mut PublisherClient<Channel>,
    topic: &str,
    key: &Key,
) -> Result<(), Status> {
    let values: Vec<_> = (0..BATCH).map(|_| recorder.value()).collect();
    let messages: Vec<_> = values.iter().map(|value| message(key, *value)).collect();
    let call = recorder.call();
    recorder.event(What::PublishInvoked {
        call,
        key: Arc::clone(key),
        values,
    });
    let mut request = Request::new(PublishRequest {
        topic: topic.to_owned(),
        messages: proto::wire::encode_all(&messages),
    });
    request.set_timeout(CALL_MAX);
    // A node that hangs does not keep its word on deadlines either.
    let answer = timeout(CALL_MAX, client.publish(request)).await;
    let answer = answer.map_err(|_| Status::deadline_exceeded("no answer"))??;
    let ids = answer.into_inner().message_ids;
    let ids = ids.iter().map(|id| message_id(id)).collect();
    recorder.event(What::PublishOk { call, ids });
    Ok(())
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

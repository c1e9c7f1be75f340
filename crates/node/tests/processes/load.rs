//! Clients that publish and consume, and write down what they do and see.

use std::sync::Arc;
use std::time::Duration;

use model::MessageId;
use proto::pubsub::publisher_client::PublisherClient;
use proto::pubsub::subscriber_client::SubscriberClient;
use proto::pubsub::{
    AcknowledgeRequest, PublishRequest, PubsubMessage, ReceivedMessage, StreamingPullRequest,
};
use sim::history::{Call, Delivered, Key, Session, Subscription, Value, What};
use tokio::sync::watch;
use tokio::time::{MissedTickBehavior, interval};
use tokio_stream::StreamExt;
use tonic::Status;
use tonic::transport::Channel;

use crate::recorder::Recorder;

/// The ack deadline of all streams: short, since after a crash exactly-once leases run out first.
pub(crate) const ACK_DEADLINE: Duration = Duration::from_secs(10);
/// Messages that a stream may have outstanding.
const OUTSTANDING_MAX: u32 = 200;
/// The pace of publishes, and of attempts to open a stream.
const PACE: Duration = Duration::from_millis(4);
/// Messages of one publish.
const BATCH: usize = 3;

/// Publishes to each key in turn, one request at a time, until it is stopped.
pub(crate) async fn publish(
    recorder: Arc<Recorder>,
    channel: Channel,
    topic: String,
    keys: Vec<Key>,
    stop: watch::Receiver<bool>,
) {
    let mut client = PublisherClient::new(channel);
    let mut pace = interval(PACE);
    pace.set_missed_tick_behavior(MissedTickBehavior::Delay);
    for key in keys.iter().cycle() {
        pace.tick().await;
        if *stop.borrow() {
            return;
        }
        let values: Vec<_> = (0..BATCH).map(|_| recorder.value()).collect();
        let messages: Vec<_> = values.iter().map(|value| message(key, *value)).collect();
        let call = recorder.call();
        recorder.event(What::PublishInvoked {
            call,
            key: Arc::clone(key),
            values,
        });
        let messages = proto::wire::encode_all(&messages);
        let answer = client
            .publish(PublishRequest {
                topic: topic.clone(),
                messages,
            })
            .await;
        // Any failure leaves open whether the messages are stored: the node may have died after.
        if let Ok(answer) = answer {
            let ids = answer.into_inner().message_ids;
            let ids = ids.iter().map(|id| message_id(id)).collect();
            recorder.event(What::PublishOk { call, ids });
        }
    }
}

/// Keeps a stream open, and acknowledges what comes, until it is stopped.
pub(crate) async fn consume(
    recorder: Arc<Recorder>,
    channel: Channel,
    name: String,
    subscription: Subscription,
    mut stop: watch::Receiver<bool>,
) {
    let mut consumer = Consumer {
        recorder,
        client: SubscriberClient::new(channel),
        name,
        subscription,
    };
    let mut pace = interval(PACE);
    pace.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            _ = stop.wait_for(|&stop| stop) => return,
            _ = pace.tick() => {}
        }
        let session = consumer.recorder.session();
        tokio::select! {
            _ = stop.wait_for(|&stop| stop) => return,
            // How a stream ends is told by the next one: a node that is down refuses it too.
            _ = consumer.stream(session) => {}
        }
        consumer.recorder.event(What::Closed { session });
    }
}

struct Consumer {
    recorder: Arc<Recorder>,
    client: SubscriberClient<Channel>,
    name: String,
    subscription: Subscription,
}

impl Consumer {
    async fn stream(&mut self, session: Session) -> Result<(), Status> {
        let first = StreamingPullRequest {
            subscription: self.name.clone(),
            stream_ack_deadline_seconds: ACK_DEADLINE.as_secs() as i32,
            max_outstanding_messages: i64::from(OUTSTANDING_MAX),
            ..StreamingPullRequest::default()
        };
        let requests = tokio_stream::once(first).chain(tokio_stream::pending());
        self.recorder.event(What::Opened {
            session,
            subscription: self.subscription,
            stream: true,
            messages_max: OUTSTANDING_MAX,
        });
        let mut responses = self.client.streaming_pull(requests).await?.into_inner();
        while let Some(response) = responses.message().await? {
            let received = proto::wire::decode_all(&response.received_messages);
            let received = received.expect("a node sends messages");
            if !received.is_empty() {
                self.receive(session, received).await?;
            }
        }
        Ok(())
    }

    /// Acks of which the answer is lost are not sent again: their messages may come again.
    async fn receive(
        &mut self,
        session: Session,
        received: Vec<ReceivedMessage>,
    ) -> Result<(), Status> {
        let mut ack_ids = Vec::new();
        let mut acks: Vec<(Call, MessageId)> = Vec::new();
        for received in received {
            let delivered = self.delivered(session, &received);
            let (delivery, message) = (delivered.delivery, delivered.message);
            self.recorder.event(What::Delivered(delivered));
            let call = self.recorder.call();
            self.recorder.event(What::AckInvoked { call, delivery });
            ack_ids.push(received.ack_id);
            acks.push((call, message));
        }
        let subscription = self.name.clone();
        let request = AcknowledgeRequest {
            subscription,
            ack_ids,
        };
        let answer = self.client.acknowledge(request).await;
        for (call, message) in acks {
            match &answer {
                Ok(_) => self.recorder.acknowledged(call, self.subscription, message),
                Err(_) => self.recorder.ack_in_doubt(self.subscription, message),
            }
        }
        answer.map(drop)
    }

    fn delivered(&self, session: Session, received: &ReceivedMessage) -> Delivered {
        let message = received.message.as_ref().expect("a delivery has a message");
        let value = str::from_utf8(&message.data)
            .ok()
            .and_then(|text| text.parse().ok());
        Delivered {
            delivery: self.recorder.delivery(),
            subscription: self.subscription,
            session,
            key: message.ordering_key.as_str().into(),
            message: message_id(&message.message_id),
            value: Value(value.expect("only this test publishes")),
            ack_deadline: ACK_DEADLINE,
        }
    }
}

fn message(key: &Key, value: Value) -> PubsubMessage {
    PubsubMessage {
        data: value.0.to_string().into(),
        ordering_key: key.to_string(),
        ..PubsubMessage::default()
    }
}

fn message_id(text: &str) -> MessageId {
    MessageId(text.parse().expect("message ids are numbers"))
}

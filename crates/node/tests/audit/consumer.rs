//! Consumes, acknowledges what comes, and writes both down.

use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use model::MessageId;
use proto::pubsub::subscriber_client::SubscriberClient;
use proto::pubsub::{AcknowledgeRequest, ReceivedMessage, StreamingPullRequest};
use sim::history::{Call, Delivered, DeliveryNumber, Session, Subscription, Value, What};
use tokio::sync::{oneshot, watch};
use tokio::time::{MissedTickBehavior, interval, timeout};
use tokio_stream::StreamExt;
use tonic::Status;
use tonic::transport::Channel;

use super::publisher::message_id;
use super::recorder::Recorder;
use super::way::Way;

/// The ack deadline of all streams: short, since after a crash exactly-once leases run out first.
const ACK_DEADLINE: Duration = Duration::from_secs(10);
/// Messages that a stream may have outstanding.
const OUTSTANDING_MAX: u32 = 200;
/// The pace of attempts to open a stream.
const PACE: Duration = Duration::from_millis(4);
/// The longest wait for the answer to an ack.
const CALL_MAX: Duration = Duration::from_secs(2);

/// Keeps a stream open over whichever node is ready, and acknowledges what comes, until it is
/// stopped.
pub(super) async fn consume(
    recorder: Arc<Recorder>,
    way: Way,
    name: String,
    subscription: Subscription,
    mut stop: watch::Receiver<bool>,
) {
    let mut pace = interval(PACE);
    pace.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let channel = tokio::select! {
            _ = stop.wait_for(|&stop| stop) => return,
            channel = async { pace.tick().await; way.channel().await } => channel,
        };
        let mut consumer = Consumer {
            recorder: Arc::clone(&recorder),
            client: SubscriberClient::new(channel),
            name: name.clone(),
            subscription,
        };
        let session = recorder.session();
        tokio::select! {
            _ = stop.wait_for(|&stop| stop) => return,
            // How a stream ends is told by the next one: a node that is down refuses it too.
            _ = consumer.stream(session) => {}
        }
        recorder.event(What::Closed { session });
    }
}

/// Acks that wait until the ones before them are answered.
#[derive(Default)]
struct Acks {
    ids: Vec<String>,
    deliveries: Vec<(DeliveryNumber, MessageId)>,
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
        // The request ends with this call: a connection lives on while one end of a stream is open,
        // and the node would go on to deliver to nobody.
        let (_open, over) = oneshot::channel::<()>();
        let nothing_more = over.into_stream().filter_map(|_| None);
        let requests = tokio_stream::once(first).chain(nothing_more);
        self.recorder.event(What::Opened {
            session,
            subscription: self.subscription,
            stream: true,
            messages_max: OUTSTANDING_MAX,
        });
        let mut responses = self.client.streaming_pull(requests).await?.into_inner();
        // The stream is read on while an ack is under way: what waits unread would seem to come
        // after the answer to the ack.
        let mut waiting = Acks::default();
        let mut under_way: Option<BoxFuture<'static, Result<(), Status>>> = None;
        loop {
            tokio::select! {
                response = responses.message() => {
                    let Some(response) = response? else {
                        return Ok(());
                    };
                    let received = proto::wire::decode_all(&response.received_messages);
                    for received in received.expect("a node sends messages") {
                        self.receive(session, received, &mut waiting);
                    }
                }
                answer = async { under_way.as_mut().expect("it is asked for").await },
                    if under_way.is_some() => {
                    under_way = None;
                    answer?;
                }
            }
            if under_way.is_none() && !waiting.ids.is_empty() {
                under_way = Some(self.acknowledge(std::mem::take(&mut waiting)).boxed());
            }
        }
    }

    fn receive(&self, session: Session, received: ReceivedMessage, waiting: &mut Acks) {
        let delivered = self.delivered(session, &received);
        let acknowledged = (delivered.delivery, delivered.message);
        self.recorder.event(What::Delivered(delivered));
        waiting.ids.push(received.ack_id);
        waiting.deliveries.push(acknowledged);
    }

    /// Sends acks once. If the answer is lost, their messages may come again.
    fn acknowledge(&self, acks: Acks) -> impl Future<Output = Result<(), Status>> + use<> {
        let invoked = |(delivery, message)| {
            let call = self.recorder.call();
            self.recorder.event(What::AckInvoked { call, delivery });
            // Until it is answered; and if the stream ends first, it never is.
            self.recorder.ack_in_doubt(self.subscription, message);
            (call, message)
        };
        let calls: Vec<(Call, MessageId)> = acks.deliveries.into_iter().map(invoked).collect();
        let request = AcknowledgeRequest {
            subscription: self.name.clone(),
            ack_ids: acks.ids,
        };
        let (recorder, subscription) = (Arc::clone(&self.recorder), self.subscription);
        let mut client = self.client.clone();
        async move {
            let answer = timeout(CALL_MAX, client.acknowledge(request)).await;
            let answer = answer.unwrap_or_else(|_| Err(Status::deadline_exceeded("no answer")));
            answer?;
            for (call, message) in calls {
                recorder.acknowledged(call, subscription, message);
            }
            Ok(())
        }
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

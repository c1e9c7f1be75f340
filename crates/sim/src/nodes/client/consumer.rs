//! Keeps a stream open, and acknowledges what comes.

use std::sync::{Arc, Mutex, PoisonError};

use proto::pubsub::subscriber_client::SubscriberClient;
use proto::pubsub::{AcknowledgeRequest, ReceivedMessage, StreamingPullRequest};
use tokio::time::sleep;
use tokio_stream::StreamExt;
use tonic::Status;

use super::publisher::message_id;
use super::{ACK_DEADLINE, AGAIN_AFTER, Endpoints, Subscribed, timed};
use crate::history::{Call, Delivered, Session, Value, What};
use crate::nodes::recorder::Recorder;

/// Messages that a stream may have outstanding.
const OUTSTANDING_MAX: u32 = 200;

/// Consumes, one stream after another, for as long as the simulation goes on.
pub(in crate::nodes) async fn consume(
    endpoints: Endpoints,
    recorder: Recorder,
    subscribed: Subscribed,
) {
    let consumer = Consumer {
        endpoints,
        recorder,
        subscribed,
    };
    loop {
        let session = consumer.recorder.session();
        let ended = consumer.stream(session).await;
        consumer.recorder.event(What::Closed { session });
        let why = ended.map_or_else(|status| status.to_string(), |()| "it ended".to_owned());
        consumer
            .recorder
            .say(format!("{session:?} is closed: {why}"));
        consumer.endpoints.next();
        sleep(AGAIN_AFTER).await;
    }
}

struct Consumer {
    endpoints: Endpoints,
    recorder: Recorder,
    subscribed: Subscribed,
}

impl Consumer {
    async fn stream(&self, session: Session) -> Result<(), Status> {
        let first = StreamingPullRequest {
            subscription: self.subscribed.name(),
            stream_ack_deadline_seconds: ACK_DEADLINE.as_secs() as i32,
            max_outstanding_messages: i64::from(OUTSTANDING_MAX),
            ..StreamingPullRequest::default()
        };
        let requests = tokio_stream::once(first).chain(tokio_stream::pending());
        self.recorder.event(What::Opened {
            session,
            subscription: self.subscribed.number,
            stream: true,
            messages_max: OUTSTANDING_MAX,
        });
        let mut client = SubscriberClient::new(self.endpoints.channel());
        let mut responses = client.streaming_pull(requests).await?.into_inner();
        let credit = Credit::new(self.recorder.clone(), session);
        while let Some(response) = responses.message().await? {
            let received = proto::wire::decode_all(&response.received_messages);
            let received = received.expect("a node sends messages");
            if !received.is_empty() {
                self.receive(&credit, received);
            }
        }
        Ok(())
    }

    /// Acknowledges while it reads on: what was sent before an ack was answered is then read before
    /// its answer. Acks of which the answer is lost are not sent again: their messages may come
    /// again.
    fn receive(&self, credit: &Credit, received: Vec<ReceivedMessage>) {
        let mut ack_ids = Vec::new();
        let mut acks: Vec<(Call, Delivered)> = Vec::new();
        for received in received {
            let delivered = self.delivered(credit.session, &received);
            let delivery = delivered.delivery;
            self.recorder.event(What::Delivered(delivered.clone()));
            let call = self.recorder.call();
            self.recorder.event(What::AckInvoked { call, delivery });
            ack_ids.push(received.ack_id);
            acks.push((call, delivered));
        }
        credit.take(acks.len());
        let request = AcknowledgeRequest {
            subscription: self.subscribed.name(),
            ack_ids,
        };
        let mut client = SubscriberClient::new(self.endpoints.channel());
        let (recorder, credit) = (self.recorder.clone(), credit.clone());
        tokio::spawn(async move {
            let answer = client.acknowledge(timed(request)).await;
            if answer.is_ok() {
                credit.give_back(acks.len());
            }
            for (call, delivered) in acks {
                if answer.is_ok() {
                    recorder.event(What::AckOk { call });
                }
                // Without an answer it may count, and then the message does not come again.
                recorder.settled(&delivered);
            }
        });
    }

    fn delivered(&self, session: Session, received: &ReceivedMessage) -> Delivered {
        let message = received.message.as_ref().expect("a delivery has a message");
        let value = str::from_utf8(&message.data)
            .ok()
            .and_then(|text| text.parse().ok());
        Delivered {
            delivery: self.recorder.delivery(),
            subscription: self.subscribed.number,
            session,
            key: message.ordering_key.as_str().into(),
            message: message_id(&message.message_id),
            value: Value(value.expect("only this simulation publishes")),
            ack_deadline: ACK_DEADLINE,
        }
    }
}

/// How much a stream may have outstanding still, as far as its client knows: what was delivered is
/// outstanding until its ack is answered. Clones are the same.
#[derive(Clone)]
struct Credit {
    recorder: Recorder,
    session: Session,
    outstanding: Arc<Mutex<usize>>,
}

impl Credit {
    /// Nothing is outstanding yet.
    fn new(recorder: Recorder, session: Session) -> Self {
        let credit = Credit {
            recorder,
            session,
            outstanding: Arc::default(),
        };
        credit.tell(true);
        credit
    }

    fn take(&self, messages: usize) {
        self.change(|outstanding| outstanding + messages);
    }

    fn give_back(&self, messages: usize) {
        self.change(|outstanding| outstanding - messages);
    }

    fn change(&self, change: impl FnOnce(usize) -> usize) {
        let mut outstanding = self
            .outstanding
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let is_free = |outstanding| outstanding < OUTSTANDING_MAX as usize;
        let before = is_free(*outstanding);
        *outstanding = change(*outstanding);
        if is_free(*outstanding) != before {
            self.tell(!before);
        }
    }

    fn tell(&self, free: bool) {
        let session = self.session;
        self.recorder.event(What::Credit { session, free });
    }
}

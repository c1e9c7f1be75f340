//! Consumes, one session after another: streams and unary pulls.

use std::time::Duration;

use futures::{StreamExt, stream};
use proto::pubsub::subscriber_client::SubscriberClient;
use proto::pubsub::{PullRequest, ReceivedMessage, StreamingPullRequest};
use tokio::sync::{oneshot, watch};
use tokio::time::sleep;
use tonic::Status;

use super::answers::{Act, Answers, Credit, Held};
use super::publisher::message_id;
use super::{ACK_DEADLINE, AGAIN_AFTER, Endpoints, Phase, Subscribed, timed};
use crate::chance::Chance;
use crate::history::{Delivered, Session, Value, What};
use crate::nodes::habits::{Habits, OUTSTANDING_USUAL};
use crate::nodes::recorder::Recorder;

/// Keeps sessions open, and does with what comes as its habits are.
pub(in crate::nodes) struct Consumer {
    pub(in crate::nodes) endpoints: Endpoints,
    pub(in crate::nodes) recorder: Recorder,
    pub(in crate::nodes) subscribed: Subscribed,
    pub(in crate::nodes) habits: Habits,
    pub(in crate::nodes) chance: Chance,
    pub(in crate::nodes) phase: watch::Receiver<Phase>,
}

impl Consumer {
    /// Consumes for as long as the simulation goes on, once the subscription is there.
    pub(in crate::nodes) async fn consume(mut self) {
        let begun = self.phase.wait_for(|phase| *phase >= Phase::Load).await;
        begun.expect("the simulation holds the sender");
        loop {
            let session = self.recorder.session();
            let is_pull = !self.is_draining() && self.chance.percent(self.habits.pull);
            let ended = match is_pull {
                true => self.pull(session).await,
                false => self.stream(session).await,
            };
            self.recorder.event(What::Closed { session });
            let why = ended
                .as_ref()
                .map_or_else(Status::to_string, |()| "it ended".to_owned());
            self.recorder.say(format!("{session:?} is closed: {why}"));
            if ended.is_err() {
                self.endpoints.next();
            }
            if ended.is_err() || !is_pull {
                sleep(AGAIN_AFTER).await;
            }
        }
    }

    /// Whether all that is left to do is to acknowledge everything.
    fn is_draining(&self) -> bool {
        *self.phase.borrow() >= Phase::Drain
    }

    fn outstanding_max(&self) -> u32 {
        match self.is_draining() {
            true => OUTSTANDING_USUAL.max(self.habits.outstanding_max),
            false => self.habits.outstanding_max,
        }
    }

    async fn pull(&mut self, session: Session) -> Result<(), Status> {
        let messages_max = self.outstanding_max();
        let request = PullRequest {
            subscription: self.subscribed.name(),
            max_messages: messages_max as i32,
            ..PullRequest::default()
        };
        self.recorder.event(What::Opened {
            session,
            subscription: self.subscribed.number,
            stream: false,
            messages_max,
        });
        let mut client = SubscriberClient::new(self.endpoints.channel());
        let response = client.pull(timed(request)).await?.into_inner();
        let credit = Credit::none(self.recorder.clone(), session);
        self.receive(&credit, session, decode(&response.received_messages));
        Ok(())
    }

    async fn stream(&mut self, session: Session) -> Result<(), Status> {
        let messages_max = self.outstanding_max();
        let first = StreamingPullRequest {
            subscription: self.subscribed.name(),
            stream_ack_deadline_seconds: ACK_DEADLINE.as_secs() as i32,
            max_outstanding_messages: i64::from(messages_max),
            ..StreamingPullRequest::default()
        };
        // The request must end with the session: the node hears of its end only so.
        let (open, opened) = oneshot::channel::<()>();
        let rest = stream::once(opened).filter_map(async |_| None);
        let requests = stream::once(async { first }).chain(rest);
        self.recorder.event(What::Opened {
            session,
            subscription: self.subscribed.number,
            stream: true,
            messages_max,
        });
        let closing = self.closing();
        tokio::pin!(closing);
        let mut client = SubscriberClient::new(self.endpoints.channel());
        let opened = tokio::select! {
            biased;
            opened = client.streaming_pull(requests) => opened?,
            () = &mut closing => return Ok(()),
        };
        let mut responses = opened.into_inner();
        let credit = Credit::new(self.recorder.clone(), session, messages_max);
        let ended = loop {
            let response = tokio::select! {
                biased;
                response = responses.message() => response,
                () = &mut closing => break Ok(()),
            };
            match response {
                Ok(Some(response)) => {
                    self.receive(&credit, session, decode(&response.received_messages));
                }
                Ok(None) => break Ok(()),
                Err(status) => break Err(status),
            }
        };
        credit.close();
        drop(open);
        ended
    }

    /// Ends when the client closes a stream of its own will: after a while if it does so, and where
    /// it takes little at once when everything is to be acknowledged.
    fn closing(&mut self) -> impl Future<Output = ()> + use<> {
        let is_draining = self.is_draining();
        let after = self.habits.close_after.filter(|_| !is_draining);
        let after = after.map(|after| self.chance.between(Duration::ZERO, 2 * after));
        let takes_little = self.outstanding_max() < OUTSTANDING_USUAL;
        let mut phase = self.phase.clone();
        async move {
            let drains = async {
                if !takes_little {
                    std::future::pending::<()>().await;
                }
                let drains = phase.wait_for(|phase| *phase >= Phase::Drain).await;
                drains.expect("the simulation holds the sender");
            };
            let over = async {
                match after {
                    Some(after) => sleep(after).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                () = drains => {}
                () = over => {}
            }
        }
    }

    /// Answers while it reads on: what was sent before an ack was answered is then read before its
    /// answer.
    fn receive(&mut self, credit: &Credit, session: Session, received: Vec<ReceivedMessage>) {
        credit.take(received.len());
        let answers = Answers {
            endpoints: self.endpoints.clone(),
            recorder: self.recorder.clone(),
            subscribed: self.subscribed,
            credit: credit.clone(),
        };
        let mut at_once = Vec::new();
        for received in received {
            let delivered = self.delivered(session, &received);
            self.recorder.event(What::Delivered(delivered.clone()));
            let ack_id = received.ack_id;
            let held = Held { ack_id, delivered };
            let act = match self.is_draining() {
                true => Act::Ack,
                false => Act::choose(&self.habits, &mut self.chance),
            };
            match act {
                Act::Ack => at_once.push(held),
                act => answers.clone().act(held, act),
            }
        }
        if !at_once.is_empty() {
            answers.ack(at_once);
        }
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

fn decode(received: &[bytes::Bytes]) -> Vec<ReceivedMessage> {
    proto::wire::decode_all(received).expect("a node sends messages")
}

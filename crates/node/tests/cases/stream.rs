//! One StreamingPull.

use std::time::Duration;

use proto::pubsub::{ReceivedMessage, StreamingPullRequest, StreamingPullResponse};
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout_at};
use tokio_stream::wrappers::UnboundedReceiverStream;
use tonic::{Status, Streaming};

use crate::client::{Client, SOON};

/// An open stream.
pub(crate) struct Stream {
    requests: mpsc::UnboundedSender<StreamingPullRequest>,
    responses: Streaming<StreamingPullResponse>,
}

impl Stream {
    /// Opens a stream; the rest of its first request as given.
    pub(crate) async fn open(
        client: &Client,
        subscription: &str,
        rest: StreamingPullRequest,
    ) -> Result<Self, Status> {
        let stream_ack_deadline_seconds = match rest.stream_ack_deadline_seconds {
            0 => 60,
            set => set,
        };
        Self::open_raw(
            client,
            StreamingPullRequest {
                subscription: subscription.to_owned(),
                stream_ack_deadline_seconds,
                ..rest
            },
        )
        .await
    }

    /// Opens a stream with exactly this request.
    pub(crate) async fn open_raw(
        client: &Client,
        first: StreamingPullRequest,
    ) -> Result<Self, Status> {
        let (requests, receiver) = mpsc::unbounded_channel();
        requests.send(first).expect("the receiver is here");
        let stream = UnboundedReceiverStream::new(receiver);
        let responses = client.subscriber.clone().streaming_pull(stream).await?;
        Ok(Stream {
            requests,
            responses: responses.into_inner(),
        })
    }

    pub(crate) fn send(&self, request: StreamingPullRequest) {
        // It fails only when the stream has ended, which the next response tells.
        let _ = self.requests.send(request);
    }

    /// The next response, which must come within `wait`.
    pub(crate) async fn response_within(&mut self, wait: Duration) -> StreamingPullResponse {
        let next = timeout_at(Instant::now() + wait, self.responses.message()).await;
        let next = next.expect("a response comes in time");
        next.expect("the stream goes on")
            .expect("the stream goes on")
    }

    /// The messages of the next responses, until there are so many.
    pub(crate) async fn receive(&mut self, count: usize) -> Vec<ReceivedMessage> {
        let mut received = Vec::new();
        while received.len() < count {
            let response = self.response_within(SOON).await;
            received.extend(messages(&response));
        }
        assert_eq!(received.len(), count, "more came than was expected");
        received
    }

    /// The next response, if one comes before `end`.
    pub(crate) async fn response_until(&mut self, end: Instant) -> Option<StreamingPullResponse> {
        let next = timeout_at(end, self.responses.message()).await.ok()?;
        Some(
            next.expect("the stream goes on")
                .expect("the stream goes on"),
        )
    }

    /// Closes the client's side, and reads what was on its way.
    pub(crate) async fn rest(self) -> Vec<StreamingPullResponse> {
        let Stream {
            requests,
            mut responses,
        } = self;
        drop(requests);
        let deadline = Instant::now() + SOON;
        let mut rest = Vec::new();
        loop {
            let next = timeout_at(deadline, responses.message()).await;
            match next.expect("the stream ends in time") {
                Ok(Some(response)) => rest.push(response),
                Ok(None) => return rest,
                Err(status) => panic!("a client that is done hears OK, not {status:?}"),
            }
        }
    }

    /// No response comes within `wait`.
    pub(crate) async fn is_silent_for(&mut self, wait: Duration) {
        if let Ok(next) = timeout_at(Instant::now() + wait, self.responses.message()).await {
            panic!("nothing should come, but {next:?} did");
        }
    }

    /// What the stream ends with, within `wait`; responses before that are skipped.
    pub(crate) async fn end_within(&mut self, wait: Duration) -> Result<(), Status> {
        let deadline = Instant::now() + wait;
        loop {
            let next = timeout_at(deadline, self.responses.message()).await;
            match next.expect("the stream ends in time") {
                Ok(Some(_)) => {}
                Ok(None) => return Ok(()),
                Err(status) => return Err(status),
            }
        }
    }
}

/// The messages of a response.
pub(crate) fn messages(response: &StreamingPullResponse) -> Vec<ReceivedMessage> {
    proto::wire::decode_all(&response.received_messages).expect("a node sends messages")
}

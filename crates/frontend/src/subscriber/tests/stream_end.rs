//! How a stream ends by itself: at its age, and when nothing is heard of its client.

use std::time::Duration;

use model::limits::{STREAM_AGE_MAX, STREAM_IDLE_MAX};
use proto::pubsub::{StreamingPullRequest, StreamingPullResponse};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};
use tokio_stream::wrappers::UnboundedReceiverStream;
use tonic::{Code, Status, Streaming};

use super::{AT_ONCE, SUBSCRIPTION, Service};

/// How often the official clients say that they are there.
const HEARTBEAT: Duration = Duration::from_secs(30);

struct Stream {
    requests: mpsc::UnboundedSender<StreamingPullRequest>,
    responses: Streaming<StreamingPullResponse>,
    opened: Instant,
}

impl Stream {
    async fn open(service: &Service) -> Stream {
        let (requests, receiver) = mpsc::unbounded_channel();
        let first = StreamingPullRequest {
            subscription: SUBSCRIPTION.to_owned(),
            stream_ack_deadline_seconds: 60,
            ..StreamingPullRequest::default()
        };
        requests.send(first).expect("the receiver is here");
        let opened = Instant::now();
        let receiver = UnboundedReceiverStream::new(receiver);
        let responses = service.subscriber.clone().streaming_pull(receiver).await;
        Stream {
            requests,
            responses: responses.expect("the stream is accepted").into_inner(),
            opened,
        }
    }

    /// Says so many times that the client is there, and then nothing. Answers what the stream ends
    /// with, and at what age.
    async fn end_after(&mut self, heartbeats: u32) -> (Status, Duration) {
        let mut sent = 0;
        loop {
            let next = self.opened + HEARTBEAT * (sent + 1);
            tokio::select! {
                response = self.responses.message() => match response {
                    Ok(Some(_)) => {}
                    Ok(None) => panic!("a client that has not asked for it hears why"),
                    Err(status) => return (status, self.opened.elapsed()),
                },
                () = sleep_until(next), if sent < heartbeats => {
                    // It fails only if the stream has ended, which the next response tells.
                    let _ = self.requests.send(StreamingPullRequest::default());
                    sent += 1;
                }
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_stream_ends_at_its_age_however_alive_its_client_is() {
    let mut service = Service::start().await;
    let mut stream = Stream::open(&service).await;
    let (status, age) = stream.end_after(100).await;
    assert_eq!(status.code(), Code::Unavailable, "clients open another one");
    let late = age.checked_sub(STREAM_AGE_MAX);
    assert!(late.is_some_and(|late| late < AT_ONCE), "at {age:?}");

    service.publish("paid").await;
    let mut next = Stream::open(&service).await;
    let response = next.responses.message().await.expect("the next one works");
    assert_eq!(
        response.map(|response| response.received_messages.len()),
        Some(1)
    );
}

#[tokio::test(start_paused = true)]
async fn a_stream_ends_when_nothing_is_heard_of_its_client() {
    let service = Service::start().await;
    for heartbeats in [0, 3] {
        let mut stream = Stream::open(&service).await;
        let (status, age) = stream.end_after(heartbeats).await;
        assert_eq!(status.code(), Code::Unavailable);
        let late = age.checked_sub(HEARTBEAT * heartbeats + STREAM_IDLE_MAX);
        assert!(late.is_some_and(|late| late < AT_ONCE), "at {age:?}");
    }
}

//! The life of one stream.

use std::collections::VecDeque;
use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt;
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use model::limits::{STREAM_AGE_MAX, STREAM_IDLE_MAX};
use proto::pubsub::streaming_pull_response::SubscriptionProperties;
use proto::pubsub::{StreamingPullRequest, StreamingPullResponse};
use router::session::{News, Session};
use router::{Open, Router};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};
use tonic::{Status, Streaming};

use super::confirm;
use super::request::{self, Asked, First, InvalidStreamRequest};
use crate::Shutdown;
use crate::status::{Failure, Unavailable};
use crate::subscriber::response::{Batch, batches};

/// Responses that wait for the transport. More than one keeps it busy; few keep leases short of
/// what the client can read.
pub(crate) const RESPONSES_WAITING_MAX: usize = 4;

/// Calls of one stream (acks and deadlines) that wait for their answer.
const CALLS_WAITING_MAX: usize = 64;

/// Where responses go, and at last the status.
pub(crate) type Responses = mpsc::Sender<Result<StreamingPullResponse, Status>>;

/// Serves one stream until it ends, and sends the status that it ends with; a client that has
/// closed its side is answered with OK, which is the end without a status.
pub(crate) async fn run(
    router: Router,
    mut requests: Streaming<StreamingPullRequest>,
    responses: Responses,
    shutdown: Shutdown,
) {
    let ended = match requests.message().await {
        Ok(Some(first)) => match Stream::open(&router, &first, responses.clone()).await {
            Ok(stream) => stream.serve(requests, shutdown).await,
            Err(failure) => Err(failure),
        },
        Ok(None) => Ok(()),
        Err(status) => Err(status.into()),
    };
    if let Err(failure) = ended {
        // A client that is gone hears nothing, which is no failure.
        let _ = responses.send(Err(failure.into())).await;
    }
}

struct Stream {
    router: Router,
    session: Session,
    first: First,
    properties: SubscriptionProperties,
    responses: Responses,
    /// Deliveries that wait for room among the responses.
    waiting: VecDeque<Batch>,
    calls: FuturesUnordered<BoxFuture<'static, Option<StreamingPullResponse>>>,
    opened: Instant,
    heard: Instant,
}

impl Stream {
    async fn open(
        router: &Router,
        request: &StreamingPullRequest,
        responses: Responses,
    ) -> Result<Stream, Failure> {
        let first = request::first(request)?;
        let asked = request::asked(request, &router.secret())?;
        let open = Open::stream(first.ack_deadline, first.client.clone(), first.limit);
        let (session, settings) = router.open(&first.subscription, open).await?;
        let opened = Instant::now();
        let mut stream = Stream {
            router: router.clone(),
            session,
            first,
            properties: SubscriptionProperties {
                exactly_once_delivery_enabled: settings.exactly_once,
                message_ordering_enabled: settings.ordered,
            },
            responses,
            waiting: VecDeque::new(),
            calls: FuturesUnordered::new(),
            opened,
            heard: opened,
        };
        stream.perform(asked).await?;
        Ok(stream)
    }

    /// Serves until the end; deliveries that were not handed to the transport are given back.
    async fn serve(
        mut self,
        requests: Streaming<StreamingPullRequest>,
        shutdown: Shutdown,
    ) -> Result<(), Failure> {
        let ended = self.pass_on(requests, shutdown).await;
        for batch in &self.waiting {
            self.session.return_unread(&batch.acks);
        }
        ended
    }

    async fn pass_on(
        &mut self,
        mut requests: Streaming<StreamingPullRequest>,
        mut shutdown: Shutdown,
    ) -> Result<(), Failure> {
        loop {
            tokio::select! {
                biased;
                () = shutdown.begun() => return Err(Unavailable::Draining.into()),
                () = sleep_until(self.closes_at()) => return Err(Unavailable::StreamClosed.into()),
                request = requests.message(), if self.calls.len() < CALLS_WAITING_MAX => {
                    match request? {
                        Some(request) => self.asked(&request).await?,
                        None => return self.finish().await,
                    }
                }
                Some(response) = self.calls.next() => {
                    if let Some(response) = response {
                        self.send(response).await?;
                    }
                }
                permit = self.responses.clone().reserve_owned(), if !self.waiting.is_empty() => {
                    let permit = permit.map_err(|_| Unavailable::StreamClosed)?;
                    let batch = self.waiting.pop_front().unwrap_or_default();
                    permit.send(Ok(self.response(batch.messages)));
                }
                news = self.session.next(), if self.waiting.is_empty() => self.heard(news).await?,
            }
        }
    }

    /// When the stream is closed if nothing more is heard of the client.
    fn closes_at(&self) -> Instant {
        let (mut old, mut idle) = (self.opened + STREAM_AGE_MAX, self.heard + STREAM_IDLE_MAX);
        if model::sabotage!("old-stream-lives") {
            old = idle;
        }
        if model::sabotage!("silent-stream-lives") {
            idle = old;
        }
        old.min(idle)
    }

    async fn asked(&mut self, request: &StreamingPullRequest) -> Result<(), Failure> {
        self.heard = Instant::now();
        let asked = request::later(request, &self.router.secret())?;
        if asked.is_heartbeat() && self.first.answers_heartbeats {
            let response = self.response(Vec::new());
            return self.send(response).await;
        }
        self.perform(asked).await
    }

    /// Carries out what a request asks; fails for an id that is none, after all others.
    async fn perform(&mut self, asked: Asked) -> Result<(), Failure> {
        if let Some(ack_deadline) = asked.ack_deadline {
            self.session.set_deadline(ack_deadline).await;
        }
        let properties = self.properties;
        let subscription = self.session.subscription();
        if !asked.acks.is_empty() {
            let (router, name) = (self.router.clone(), self.first.subscription.clone());
            self.calls.push(Box::pin(async move {
                let confirmation = confirm::acks(&router, &name, subscription, asked.acks).await;
                confirmed(properties, |response| {
                    response.acknowledge_confirmation = Some(confirmation);
                })
            }));
        }
        if !asked.deadlines.is_empty() {
            let (router, name) = (self.router.clone(), self.first.subscription.clone());
            self.calls.push(Box::pin(async move {
                let asked = asked.deadlines;
                let confirmation = confirm::deadlines(&router, &name, subscription, asked).await;
                confirmed(properties, |response| {
                    response.modify_ack_deadline_confirmation = Some(confirmation);
                })
            }));
        }
        match asked.malformed {
            None => Ok(()),
            Some(malformed) => {
                self.finish().await?;
                Err(InvalidStreamRequest::from(malformed).into())
            }
        }
    }

    async fn heard(&mut self, news: News) -> Result<(), Failure> {
        match news {
            News::Deliveries(deliveries) => {
                self.waiting
                    .extend(batches(&self.router.secret(), &deliveries));
                Ok(())
            }
            News::Properties {
                exactly_once,
                ordered,
            } => {
                self.properties.exactly_once_delivery_enabled = exactly_once;
                self.properties.message_ordering_enabled = ordered;
                Ok(())
            }
            News::Ended => Err(self.router.why_ended(&self.first.subscription).await.into()),
        }
    }

    fn response(&self, received_messages: Vec<Bytes>) -> StreamingPullResponse {
        StreamingPullResponse {
            received_messages,
            subscription_properties: Some(self.properties),
            ..StreamingPullResponse::default()
        }
    }

    async fn send(&mut self, response: StreamingPullResponse) -> Result<(), Failure> {
        let sent = self.responses.send(Ok(response)).await;
        sent.map_err(|_| Unavailable::StreamClosed.into())
    }

    /// The stream is about to end: what the client asked is still carried out.
    async fn finish(&mut self) -> Result<(), Failure> {
        const WAIT_MAX: Duration = Duration::from_millis(500);
        let end = sleep_until(Instant::now() + WAIT_MAX);
        tokio::pin!(end);
        loop {
            tokio::select! {
                () = &mut end => return Ok(()),
                called = self.calls.next() => match called {
                    Some(Some(response)) => self.send(response).await?,
                    Some(None) => {}
                    None => return Ok(()),
                },
            }
        }
    }
}

/// A response that confirms something; only exactly-once subscriptions confirm.
fn confirmed(
    properties: SubscriptionProperties,
    fill: impl FnOnce(&mut StreamingPullResponse),
) -> Option<StreamingPullResponse> {
    properties.exactly_once_delivery_enabled.then(|| {
        let mut response = StreamingPullResponse {
            subscription_properties: Some(properties),
            ..StreamingPullResponse::default()
        };
        fill(&mut response);
        response
    })
}

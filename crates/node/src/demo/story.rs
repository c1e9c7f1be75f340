//! The demonstration's story: a key is published through one region and consumed in another; the
//! first region is lost and returns; the order holds.

use std::time::Duration;

use proto::pubsub::publisher_client::PublisherClient;
use proto::pubsub::subscriber_client::SubscriberClient;
use proto::pubsub::{
    AcknowledgeRequest, PublishRequest, PubsubMessage, ReceivedMessage, StreamingPullRequest,
    Subscription, Topic,
};
use tokio::sync::mpsc;
use tokio::time::{Instant, interval, sleep, timeout};
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Request, Status};

use super::cluster::{Cluster, Which};
use super::plan::Plan;
use crate::cli::Failure;
use crate::cli::output::say_line;
use crate::cli::session::{is_passing, requests};

const TOPIC: &str = "projects/demo/topics/orders";
const SUBSCRIPTION: &str = "projects/demo/subscriptions/shipping";
const KEY: &str = "order-7";
/// Messages before the region is lost, while it is away, and after it is back.
const MESSAGES: [u32; 3] = [8, 12, 8];
/// Between two messages.
const PACE: Duration = Duration::from_millis(300);
/// The deadline of one publish, and the pause before it is made again.
const CALL_MAX: Duration = Duration::from_secs(2);
const RETRY: Duration = Duration::from_millis(50);
/// How long any step may take.
const STEP_MAX: Duration = Duration::from_secs(30);
const ACK_DEADLINE_SECONDS: i32 = 30;

/// Who plays.
struct Story {
    /// An endpoint of each region, by name, in the order in which the publisher tries them.
    regions: Vec<(&'static str, Endpoint)>,
    /// What the consumer in the last region has received.
    received: mpsc::UnboundedReceiver<u32>,
    /// The number of the next message to publish, and of the next one to be received.
    next: u32,
    expected: u32,
    again: u32,
}

/// Tells it.
///
/// # Errors
/// [`Failure`] when a step takes too long, or something arrives out of order.
pub(super) async fn tell(cluster: &mut Cluster) -> Result<(), Failure> {
    let mut story = Story::begin(cluster.plan()).await?;
    let lost = story.regions[0].0;
    story.publish(MESSAGES[0]).await?;
    say_line(&format!("{lost} is lost: all its nodes are killed."))?;
    cluster.kill(&Which::Region(lost.to_owned()))?;
    story.publish(MESSAGES[1]).await?;
    say_line(&format!("{lost} returns."))?;
    cluster.start_missing()?;
    cluster.wait_until_ready().await?;
    story.publish(MESSAGES[2]).await?;
    story.end().await
}

impl Story {
    async fn begin(plan: &Plan) -> Result<Self, Failure> {
        let endpoint = |port| {
            let endpoint = Endpoint::from_shared(format!("http://127.0.0.1:{port}"));
            endpoint.expect("an address").connect_timeout(CALL_MAX)
        };
        let regions: Vec<(&str, Endpoint)> = plan
            .regions()
            .iter()
            .map(|region| (region.name, endpoint(region.nodes[0].port)))
            .collect();
        let (first, last) = (&regions[0], &regions[regions.len() - 1]);
        create(first.1.connect_lazy()).await?;
        say_line(&format!(
            "{KEY} is published through {}, and consumed in {}.",
            first.0, last.0
        ))?;
        let (sender, received) = mpsc::unbounded_channel();
        tokio::spawn(consume(last.1.connect_lazy(), sender));
        Ok(Story {
            regions,
            received,
            next: 1,
            expected: 1,
            again: 0,
        })
    }

    /// Publishes so many messages, and tells of what arrives meanwhile.
    async fn publish(&mut self, count: u32) -> Result<(), Failure> {
        let mut pace = interval(PACE);
        for _ in 0..count {
            pace.tick().await;
            let number = self.next;
            let start = Instant::now();
            let (region, _) = &self.regions[timeout(STEP_MAX, self.publish_one(number))
                .await
                .map_err(|_| late("publish"))?];
            let took = start.elapsed().as_millis();
            say_line(&format!(
                "  {region:6} took    {KEY} #{number} in {took} ms"
            ))?;
            self.next += 1;
            while let Ok(number) = self.received.try_recv() {
                self.arrived(number)?;
            }
        }
        Ok(())
    }

    /// Publishes until it is answered OK; the place of the region that did.
    async fn publish_one(&self, number: u32) -> usize {
        loop {
            for (place, (_, endpoint)) in self.regions.iter().enumerate() {
                if publish(endpoint.connect_lazy(), number).await.is_ok() {
                    return place;
                }
            }
            sleep(RETRY).await;
        }
    }

    fn arrived(&mut self, number: u32) -> Result<(), Failure> {
        let (region, _) = &self.regions[self.regions.len() - 1];
        if number > self.expected {
            return Err(Failure::Check(format!(
                "{KEY} #{number} arrived before #{}",
                self.expected
            )));
        }
        if number < self.expected {
            self.again += 1;
            say_line(&format!("  {region:6} got     {KEY} #{number} again"))?;
        } else {
            self.expected += 1;
            say_line(&format!("  {region:6} got     {KEY} #{number}"))?;
        }
        Ok(())
    }

    async fn end(mut self) -> Result<(), Failure> {
        while self.expected < self.next {
            let arrives = timeout(STEP_MAX, self.received.recv()).await;
            let number = arrives.ok().flatten().ok_or_else(|| late("delivery"))?;
            self.arrived(number)?;
        }
        say_line(&format!(
            "{} published and answered, {} received: all of them, in order; {} came again.",
            self.next - 1,
            self.expected - 1,
            self.again
        ))
    }
}

fn late(what: &str) -> Failure {
    Failure::Check(format!("a {what} took longer than {STEP_MAX:?}"))
}

/// Creates the topic and the subscription, also while leaders are still on their way home.
async fn create(channel: Channel) -> Result<(), Failure> {
    let mut publisher = PublisherClient::new(channel.clone());
    let topic = Topic {
        name: TOPIC.to_owned(),
        ..Topic::default()
    };
    created(async || publisher.create_topic(topic.clone()).await.map(drop)).await?;
    let mut subscriber = SubscriberClient::new(channel);
    let subscription = Subscription {
        name: SUBSCRIPTION.to_owned(),
        topic: TOPIC.to_owned(),
        enable_message_ordering: true,
        ack_deadline_seconds: ACK_DEADLINE_SECONDS,
        ..Subscription::default()
    };
    created(async || {
        let created = subscriber.create_subscription(subscription.clone()).await;
        created.map(drop)
    })
    .await
}

async fn created(mut create: impl AsyncFnMut() -> Result<(), Status>) -> Result<(), Failure> {
    let give_up = Instant::now() + STEP_MAX;
    loop {
        match create().await {
            Ok(()) => return Ok(()),
            // Of an earlier story in the same folder.
            Err(status) if status.code() == Code::AlreadyExists => return Ok(()),
            Err(status) if is_passing(status.code()) && Instant::now() < give_up => {
                sleep(RETRY).await;
            }
            Err(status) => return Err(status.into()),
        }
    }
}

async fn publish(channel: Channel, number: u32) -> Result<(), Status> {
    let message = PubsubMessage {
        data: number.to_string().into(),
        ordering_key: KEY.to_owned(),
        ..PubsubMessage::default()
    };
    let mut request = Request::new(PublishRequest {
        topic: TOPIC.to_owned(),
        messages: proto::wire::encode_all(&[message]),
    });
    request.set_timeout(CALL_MAX);
    PublisherClient::new(channel).publish(request).await?;
    Ok(())
}

/// Passes on the numbers that arrive, and acknowledges them, until nobody listens.
async fn consume(channel: Channel, received: mpsc::UnboundedSender<u32>) {
    while !received.is_closed() {
        // A stream that ends is opened again.
        let _ = stream(channel.clone(), &received).await;
        sleep(RETRY).await;
    }
}

async fn stream(channel: Channel, received: &mpsc::UnboundedSender<u32>) -> Result<(), Status> {
    let mut subscriber = SubscriberClient::new(channel);
    let first = StreamingPullRequest {
        subscription: SUBSCRIPTION.to_owned(),
        stream_ack_deadline_seconds: ACK_DEADLINE_SECONDS,
        ..StreamingPullRequest::default()
    };
    let responses = subscriber.streaming_pull(requests(first)).await?;
    let mut responses = responses.into_inner();
    while let Some(response) = responses.message().await? {
        let deliveries = proto::wire::decode_all::<ReceivedMessage>(&response.received_messages);
        let deliveries = deliveries.map_err(|error| Status::internal(error.to_string()))?;
        let mut ack_ids = Vec::new();
        for delivery in deliveries {
            let message = delivery.message.unwrap_or_default();
            let number = str::from_utf8(&message.data)
                .ok()
                .and_then(|it| it.parse().ok());
            if let Some(number) = number {
                // Nobody listens any more when the story is over.
                let _ = received.send(number);
            }
            ack_ids.push(delivery.ack_id);
        }
        let subscription = SUBSCRIPTION.to_owned();
        let request = AcknowledgeRequest {
            subscription,
            ack_ids,
        };
        subscriber.acknowledge(request).await?;
    }
    Ok(())
}

//! Ten streams of an exactly-once subscription on one connection, while the node that they are
//! connected to is restarted, and then the next one. Acks are unary calls, through any node.
//! However long the ack deadline is, no key waits for more than five seconds, or ten while a node
//! restarts.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use proto::pubsub::publisher_client::PublisherClient;
use proto::pubsub::subscriber_client::SubscriberClient;
use proto::pubsub::{
    AcknowledgeRequest, PublishRequest, PubsubMessage, ReceivedMessage, StreamingPullRequest,
    Subscription,
};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, interval};
use tokio_stream::StreamExt;
use tonic::transport::Channel;
use tonic::{Code, Request, Status};

use crate::audit::load::until;
use crate::audit::resources::{create_subscription, create_topic};
use crate::audit::way::Way;
use crate::cluster::Cluster;

const TOPIC: &str = "projects/orderly/topics/orders";
const SUBSCRIPTION: &str = "projects/orderly/subscriptions/billing";
const STREAMS: usize = 10;
const KEYS: usize = 200;
/// A key that waited for a lease would wait for this long.
const ACK_DEADLINE_SECONDS: i32 = 120;
/// From a publish to its first delivery, at most, while all nodes are there.
const DELIVERED_IN: Duration = Duration::from_secs(5);
/// The same if a node was restarted meanwhile.
const DELIVERED_IN_RESTART: Duration = Duration::from_secs(10);
/// An ack is not tried for longer.
const ACKNOWLEDGED_IN: Duration = Duration::from_secs(30);
const CALL_MAX: Duration = Duration::from_secs(5);
/// The pace of publishes.
const PACE: Duration = Duration::from_millis(20);
/// Deliveries between two restarts.
const DELIVERIES: usize = 200;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_key_waits_for_the_lease_of_a_stream_that_was_drained() {
    let mut cluster = Cluster::of_regions().await;
    let endpoints = cluster.endpoints();
    create(&endpoints).await;
    let notes = Arc::new(Notes::default());
    let (stop, stopped) = watch::channel(false);
    let mut clients = JoinSet::new();
    clients.spawn(consume(endpoints.clone(), Arc::clone(&notes)));
    let publisher = tokio::spawn(publish(endpoints, Arc::clone(&notes), stopped));

    let mut restarts = Vec::new();
    for number in 0..2 {
        let before = notes.delivered();
        until("deliveries", || {
            let more = notes.delivered() - before;
            (more >= DELIVERIES).then_some(()).ok_or(more)
        })
        .await;
        let began = Instant::now();
        let status = cluster.members()[number].terminate();
        assert!(status.success(), "{status:?}");
        cluster.members()[number].start();
        cluster.ready().await;
        restarts.push(began..Instant::now());
    }
    stop.send_replace(true);
    publisher.await.expect("the publisher does not panic");
    until("all are delivered", || {
        let (delivered, published) = (notes.delivered(), notes.published());
        (delivered == published).then_some(()).ok_or(delivered)
    })
    .await;
    clients.abort_all();
    for in_restart in [false, true] {
        let within = match in_restart {
            true => DELIVERED_IN_RESTART,
            false => DELIVERED_IN,
        };
        let (slowest, key) = notes.slowest(&restarts, in_restart);
        assert!(slowest < within, "{key} waited for {slowest:?}");
    }
    cluster.replicas_are_alike().await;
}

/// What the clients did and saw.
#[derive(Default)]
struct Notes(Mutex<BTreeMap<String, Note>>);

/// Of one message.
struct Note {
    published: Instant,
    delivered: Option<Instant>,
    acknowledged: bool,
}

impl Notes {
    fn publish(&self, message: String) {
        let note = Note {
            published: Instant::now(),
            delivered: None,
            acknowledged: false,
        };
        self.lock().insert(message, note);
    }

    /// A message is not waited for, though it may come.
    fn forget(&self, message: &str) {
        self.lock().remove(message);
    }

    /// A message may come again until its ack is answered, and not later.
    fn deliver(&self, message: &str) {
        let mut notes = self.lock();
        let Some(note) = notes.get_mut(message) else {
            return;
        };
        assert!(!note.acknowledged, "{message} came after its ack");
        note.delivered.get_or_insert_with(Instant::now);
    }

    fn acknowledge(&self, message: &str) {
        let mut notes = self.lock();
        if let Some(note) = notes.get_mut(message) {
            note.acknowledged = true;
        }
    }

    fn published(&self) -> usize {
        self.lock().len()
    }

    fn delivered(&self) -> usize {
        let notes = self.lock();
        notes
            .values()
            .filter(|note| note.delivered.is_some())
            .count()
    }

    /// The longest wait for a delivery, and whose it was: of those in which a node was restarted,
    /// or of the others.
    fn slowest(&self, restarts: &[Range<Instant>], in_restart: bool) -> (Duration, String) {
        let notes = self.lock();
        let waits = notes.iter().filter_map(|(message, note)| {
            let (published, delivered) = (note.published, note.delivered?);
            let meets =
                |restart: &Range<Instant>| published <= restart.end && delivered >= restart.start;
            let wait = (delivered - published, message.clone());
            (restarts.iter().any(meets) == in_restart).then_some(wait)
        });
        waits.max().expect("something was delivered")
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, Note>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn create(endpoints: &[String]) {
    create_topic(endpoints, TOPIC).await;
    let subscription = Subscription {
        name: SUBSCRIPTION.to_owned(),
        topic: TOPIC.to_owned(),
        enable_message_ordering: true,
        enable_exactly_once_delivery: true,
        ..Subscription::default()
    };
    create_subscription(endpoints, &subscription).await;
}

/// Publishes to each key in turn, each message until it is answered: one that was stored twice is
/// delivered twice.
async fn publish(endpoints: Vec<String>, notes: Arc<Notes>, stopped: watch::Receiver<bool>) {
    let way = Way::new(&endpoints, 1);
    let mut client = PublisherClient::new(way.channel().await);
    let mut pace = interval(PACE);
    for number in 0.. {
        pace.tick().await;
        if *stopped.borrow() {
            return;
        }
        let key = format!("key-{}", number % KEYS);
        for attempt in 0.. {
            let text = format!("{key}/{number}/{attempt}");
            if publish_one(&mut client, &notes, &key, text).await.is_ok() {
                break;
            }
            client = PublisherClient::new(way.channel().await);
        }
    }
}

async fn publish_one(
    client: &mut PublisherClient<Channel>,
    notes: &Notes,
    key: &str,
    text: String,
) -> Result<(), Status> {
    notes.publish(text.clone());
    let message = PubsubMessage {
        data: text.clone().into(),
        ordering_key: key.to_owned(),
        ..PubsubMessage::default()
    };
    let mut request = Request::new(PublishRequest {
        topic: TOPIC.to_owned(),
        messages: proto::wire::encode_all(&[message]),
    });
    request.set_timeout(CALL_MAX);
    let answer = client.publish(request).await;
    if answer.is_err() {
        // Whether it was stored is open: it may come, and is not waited for.
        notes.forget(&text);
    }
    answer.map(drop)
}

/// Keeps ten streams open on one connection; when one ends, all begin again on another.
async fn consume(endpoints: Vec<String>, notes: Arc<Notes>) {
    loop {
        let channel = Way::new(&endpoints, 0).channel().await;
        let mut streams = JoinSet::new();
        for _ in 0..STREAMS {
            let (endpoints, channel) = (endpoints.clone(), channel.clone());
            streams.spawn(stream(endpoints, channel, Arc::clone(&notes)));
        }
        while let Some(ended) = streams.join_next().await {
            let ended = ended.expect("nothing is delivered after its ack");
            let code = ended.expect_err("a stream ends with a reason").code();
            let passing = [Code::Unavailable, Code::Unknown, Code::Cancelled];
            assert!(passing.contains(&code), "a stream ended with {code:?}");
        }
    }
}

/// Reads one stream to its end. What it was given is acknowledged, also when it has ended.
async fn stream(endpoints: Vec<String>, channel: Channel, notes: Arc<Notes>) -> Result<(), Status> {
    let first = StreamingPullRequest {
        subscription: SUBSCRIPTION.to_owned(),
        stream_ack_deadline_seconds: ACK_DEADLINE_SECONDS,
        max_outstanding_messages: 100,
        ..StreamingPullRequest::default()
    };
    let requests = tokio_stream::once(first).chain(tokio_stream::pending());
    let mut client = SubscriberClient::new(channel);
    let mut responses = client
        .streaming_pull(Request::new(requests))
        .await?
        .into_inner();
    while let Some(response) = responses.message().await? {
        let received = proto::wire::decode_all::<ReceivedMessage>(&response.received_messages);
        for received in received.expect("a node sends messages") {
            let message = received.message.expect("a delivery has a message");
            let text = String::from_utf8_lossy(&message.data).into_owned();
            notes.deliver(&text);
            let ack_id = received.ack_id;
            let answer = acknowledge(&mut client, &ack_id).await;
            let taken = match answer {
                Ok(()) => true,
                // The node goes: ids are good through any other.
                Err(_) => acknowledge_elsewhere(&endpoints, &ack_id).await,
            };
            if taken {
                notes.acknowledge(&text);
            }
        }
    }
    Err(Status::unavailable("the stream has ended"))
}

async fn acknowledge(client: &mut SubscriberClient<Channel>, ack_id: &str) -> Result<(), Status> {
    let mut request = Request::new(AcknowledgeRequest {
        subscription: SUBSCRIPTION.to_owned(),
        ack_ids: vec![ack_id.to_owned()],
    });
    request.set_timeout(CALL_MAX);
    client.acknowledge(request).await.map(drop)
}

/// Until it is answered, through whichever node is ready; whether it was taken. It is refused where
/// the stream ended so long ago that the message is on its way to another one.
async fn acknowledge_elsewhere(endpoints: &[String], ack_id: &str) -> bool {
    let give_up = Instant::now() + ACKNOWLEDGED_IN;
    for first in 0.. {
        let channel = Way::new(endpoints, first).channel().await;
        match acknowledge(&mut SubscriberClient::new(channel), ack_id).await {
            Ok(()) => return true,
            Err(status) if status.code() == Code::FailedPrecondition => return false,
            Err(status) => assert!(Instant::now() < give_up, "not answered: {status:?}"),
        }
    }
    unreachable!("there are always more attempts")
}

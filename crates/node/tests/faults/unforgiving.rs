//! A user's service that publishes at a steady pace and makes no call twice: what fails is an error
//! of its own, and what takes long is a stall of its own. It uses nodes that say that they are
//! ready, as a load balancer sees to it.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use proto::pubsub::publisher_client::PublisherClient;
use proto::pubsub::{PublishRequest, PubsubMessage};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, interval, sleep};
use tonic::transport::Channel;
use tonic::{Request, Status};

use crate::audit::resources::create_topic;
use crate::audit::way::{answers_well, to};

const TOPIC: &str = "projects/orderly/topics/steady";
/// Two hundred publishes in a second.
const PACE: Duration = Duration::from_millis(5);
/// Each key is published through one and the same node as long as that is ready.
const KEYS: usize = 60;
/// Far longer than what may be: how long a stall is is to be seen.
const CALL_MAX: Duration = Duration::from_secs(10);
/// Failures that are told one by one.
const FAILURES_TOLD_MAX: usize = 10;
/// How often a load balancer asks a node whether it is ready.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// The service at work. It ends with this.
pub(crate) struct Unforgiving {
    shared: Arc<Shared>,
    stop: watch::Sender<bool>,
    publisher: JoinSet<()>,
    _watchers: JoinSet<()>,
}

/// What it has seen.
#[derive(Default)]
pub(crate) struct Figures {
    pub(crate) answered: usize,
    /// When each publish failed that did, since the beginning, and what the answer was.
    pub(crate) failed: Vec<(Duration, Status)>,
    /// The longest that a publish took, whatever its answer.
    pub(crate) slowest: Duration,
    /// When that answer came, since the beginning.
    slowest_at: Duration,
}

impl fmt::Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Figures {
            answered,
            failed,
            slowest,
            slowest_at,
        } = self;
        let count = failed.len();
        write!(
            f,
            "{answered} publishes answered, {count} failed, the slowest took {slowest:.0?}, to \
             {slowest_at:.1?}"
        )?;
        let mut told = failed.iter().take(FAILURES_TOLD_MAX);
        told.try_for_each(|(at, status)| write!(f, "; at {at:.1?}: {status}"))
    }
}

struct Shared {
    nodes: Vec<Node>,
    start: Instant,
    figures: Mutex<Figures>,
}

struct Node {
    endpoint: String,
    channel: Channel,
    is_ready: AtomicBool,
}

impl Unforgiving {
    /// Creates the topic and starts.
    pub(crate) async fn start(endpoints: &[String]) -> Self {
        create_topic(endpoints, TOPIC).await;
        let node = |endpoint: &String| Node {
            endpoint: endpoint.clone(),
            channel: to(endpoint).connect_lazy(),
            is_ready: AtomicBool::new(true),
        };
        let shared = Arc::new(Shared {
            nodes: endpoints.iter().map(node).collect(),
            start: Instant::now(),
            figures: Mutex::default(),
        });
        let mut watchers = JoinSet::new();
        for number in 0..endpoints.len() {
            watchers.spawn(watch_node(Arc::clone(&shared), number));
        }
        let (stop, stopped) = watch::channel(false);
        let mut publisher = JoinSet::new();
        publisher.spawn(publish(Arc::clone(&shared), stopped));
        Unforgiving {
            shared,
            stop,
            publisher,
            _watchers: watchers,
        }
    }

    /// Waits for the answers to all that was published.
    pub(crate) async fn ends(self) -> Figures {
        self.stop.send_replace(true);
        self.publisher.join_all().await;
        std::mem::take(&mut *self.shared.figures())
    }
}

impl Shared {
    fn figures(&self) -> MutexGuard<'_, Figures> {
        self.figures.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The first node that is ready, from a preferred one on; that one if none is.
    fn node(&self, preferred: usize) -> &Node {
        let nodes = self.nodes.iter().cycle().skip(preferred % self.nodes.len());
        let mut nodes = nodes.take(self.nodes.len());
        let ready = nodes.find(|node| node.is_ready.load(Ordering::Relaxed));
        ready.unwrap_or(&self.nodes[preferred % self.nodes.len()])
    }
}

async fn watch_node(shared: Arc<Shared>, number: usize) {
    let node = &shared.nodes[number];
    loop {
        let is_ready = answers_well(&node.endpoint, "/readyz").await;
        node.is_ready.store(is_ready, Ordering::Relaxed);
        // sleep: the pace of a load balancer
        sleep(LOOK_EVERY).await;
    }
}

/// Begins a publish at each tick, whatever became of those before, until it is stopped.
async fn publish(shared: Arc<Shared>, stopped: watch::Receiver<bool>) {
    let mut pace = interval(PACE);
    let mut calls = JoinSet::new();
    for number in 0.. {
        pace.tick().await;
        if *stopped.borrow() {
            break;
        }
        calls.spawn(publish_one(Arc::clone(&shared), number % KEYS));
        while calls.try_join_next().is_some() {}
    }
    calls.join_all().await;
}

async fn publish_one(shared: Arc<Shared>, key: usize) {
    let message = PubsubMessage {
        data: "steady".into(),
        ordering_key: format!("steady-{key}"),
        ..PubsubMessage::default()
    };
    let mut request = Request::new(PublishRequest {
        topic: TOPIC.to_owned(),
        messages: proto::wire::encode_all(&[message]),
    });
    request.set_timeout(CALL_MAX);
    let called = Instant::now();
    let channel = shared.node(key).channel.clone();
    let answer = PublisherClient::new(channel).publish(request).await;
    let (took, at) = (called.elapsed(), shared.start.elapsed());
    let mut figures = shared.figures();
    match answer {
        Ok(_) => figures.answered += 1,
        Err(status) => figures.failed.push((at, status)),
    }
    if took > figures.slowest {
        (figures.slowest, figures.slowest_at) = (took, at);
    }
}

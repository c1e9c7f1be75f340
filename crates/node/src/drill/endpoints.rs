//! How a client finds a node: a list of endpoints, of which it uses the first that is ready.
//!
//! This is what a load balancer or a multi-region DNS name does for users' clients: `/readyz` says
//! whether a node takes calls, and a client goes elsewhere when its node says no more that it does.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::sleep;
use tonic::transport::{Channel, Endpoint};

use crate::probe::endpoint_says_ready;

/// The wait before an endpoint is looked at again.
const LOOK_AGAIN_AFTER: Duration = Duration::from_millis(100);
/// A node that does not accept a connection for so long is not there.
const CONNECT_MAX: Duration = Duration::from_secs(1);
/// A connection without a sign of life is dropped after these.
const KEEPALIVE_EVERY: Duration = Duration::from_secs(1);
const KEEPALIVE_WAIT: Duration = Duration::from_secs(1);

/// All endpoints of a cluster, watched all the time. Clones are the same.
#[derive(Clone)]
pub(super) struct Endpoints {
    nodes: Arc<[Node]>,
    /// Ends with the last clone.
    _watchers: Arc<JoinSet<()>>,
}

struct Node {
    endpoint: String,
    /// A connection for many short calls, made when it is needed and again when it is lost; `None`
    /// where the endpoint is no address.
    shared: Option<Channel>,
    is_ready: AtomicBool,
    /// It said something when it was last asked, and be it that it is not ready.
    answers: AtomicBool,
}

/// A connection to one endpoint.
pub(super) struct Connection {
    pub(super) channel: Channel,
    number: usize,
}

impl Endpoints {
    /// Watches these endpoints.
    pub(super) fn new(endpoints: Vec<String>) -> Self {
        let node = |endpoint: String| Node {
            shared: at(&endpoint).map(|endpoint| endpoint.connect_lazy()),
            endpoint,
            is_ready: AtomicBool::new(false),
            answers: AtomicBool::new(false),
        };
        let nodes: Arc<[Node]> = endpoints.into_iter().map(node).collect();
        let mut watchers = JoinSet::new();
        for number in 0..nodes.len() {
            watchers.spawn(watch(Arc::clone(&nodes), number));
        }
        Endpoints {
            nodes,
            _watchers: Arc::new(watchers),
        }
    }

    /// All of them, for people.
    pub(super) fn names(&self) -> String {
        let names: Vec<&str> = self.nodes.iter().map(|node| &*node.endpoint).collect();
        names.join(", ")
    }

    pub(super) fn len(&self) -> usize {
        self.nodes.len()
    }

    /// A connection to the first node that is ready, beginning with the `preferred` one. Waits
    /// until there is one.
    pub(super) async fn connect(&self, preferred: usize) -> Connection {
        loop {
            for number in self.ready(preferred) {
                if let Some(channel) = dial(&self.nodes[number].endpoint).await {
                    return Connection { channel, number };
                }
            }
            sleep(LOOK_AGAIN_AFTER).await;
        }
    }

    /// The connection that all callers share to the first node that is ready, beginning with the
    /// `preferred` one. Waits until there is one.
    pub(super) async fn shared(&self, preferred: usize) -> Channel {
        loop {
            let mut ready = self.ready(preferred);
            if let Some(channel) = ready.find_map(|number| self.nodes[number].shared.clone()) {
                return channel;
            }
            sleep(LOOK_AGAIN_AFTER).await;
        }
    }

    /// The numbers of the nodes that are ready, beginning with the `preferred` one.
    fn ready(&self, preferred: usize) -> impl Iterator<Item = usize> {
        let count = self.nodes.len();
        let in_order = (0..count).map(move |place| (preferred + place) % count);
        in_order.filter(|number| self.nodes[*number].is_ready.load(Ordering::Relaxed))
    }

    /// Whether the node of a connection said when it was last asked that it takes calls.
    pub(super) fn is_ready(&self, connection: &Connection) -> bool {
        let node = &self.nodes[connection.number];
        node.is_ready.load(Ordering::Relaxed)
    }

    /// Waits until the node of a connection gives no answer any more. One that only says that it is
    /// not ready finishes what it has begun.
    pub(super) async fn falls_silent(&self, connection: &Connection) {
        let node = &self.nodes[connection.number];
        while node.answers.load(Ordering::Relaxed) {
            sleep(LOOK_AGAIN_AFTER).await;
        }
    }
}

async fn watch(nodes: Arc<[Node]>, number: usize) {
    let node = &nodes[number];
    loop {
        let said = endpoint_says_ready(&node.endpoint).await;
        node.is_ready.store(said == Some(true), Ordering::Relaxed);
        node.answers.store(said.is_some(), Ordering::Relaxed);
        sleep(LOOK_AGAIN_AFTER).await;
    }
}

async fn dial(endpoint: &str) -> Option<Channel> {
    at(endpoint)?.connect().await.ok()
}

/// `None` where that is no address.
fn at(endpoint: &str) -> Option<Endpoint> {
    let endpoint = Endpoint::from_shared(format!("http://{endpoint}")).ok()?;
    let endpoint = endpoint
        .connect_timeout(CONNECT_MAX)
        .tcp_nodelay(true)
        .http2_keep_alive_interval(KEEPALIVE_EVERY)
        .keep_alive_timeout(KEEPALIVE_WAIT)
        .keep_alive_while_idle(true);
    Some(endpoint)
}

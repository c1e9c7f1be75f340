//! The nodes that a client knows, and the one that it uses now.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use hyper_util::rt::TokioIo;
use replica::Network;
use tonic::transport::{Channel, Endpoint};
use tower::service_fn;

use crate::nodes::network::Virtual;

/// A connection without a sign of life is dropped after these.
const KEEPALIVE_EVERY: Duration = Duration::from_secs(1);
const KEEPALIVE_WAIT: Duration = Duration::from_secs(1);
/// A node that does not accept a connection for so long is not there.
const CONNECT_MAX: Duration = Duration::from_secs(1);

/// Nodes, of which one is used until it fails.
#[derive(Clone)]
pub(in crate::nodes) struct Endpoints {
    channels: Vec<Channel>,
    used: Arc<AtomicUsize>,
}

impl Endpoints {
    /// Knows these nodes, as `host:port`, and begins with the first.
    pub(in crate::nodes) fn new(nodes: &[String]) -> Self {
        Endpoints {
            channels: nodes.iter().map(|node| channel(node.clone())).collect(),
            used: Arc::default(),
        }
    }

    /// A channel to the node that is used now.
    pub(super) fn channel(&self) -> Channel {
        let used = self.used.load(Ordering::Relaxed);
        self.channels[used % self.channels.len()].clone()
    }

    /// Uses the next node from now on.
    pub(super) fn next(&self) {
        self.used.fetch_add(1, Ordering::Relaxed);
    }
}

/// A connection that is made when it is first used, and again after it broke.
fn channel(node: String) -> Channel {
    let network = Network::new(Virtual);
    let connector = service_fn(move |_| {
        let (network, node) = (network.clone(), node.clone());
        async move { network.connect(&node).await.map(TokioIo::new) }
    });
    Endpoint::from_static("http://node")
        .connect_timeout(CONNECT_MAX)
        .http2_keep_alive_interval(KEEPALIVE_EVERY)
        .keep_alive_timeout(KEEPALIVE_WAIT)
        .keep_alive_while_idle(true)
        .connect_with_connector_lazy(connector)
}

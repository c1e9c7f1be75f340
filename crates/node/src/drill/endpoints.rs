//! How a client finds a node: a list of endpoints, of which it uses the first that is ready.
//!
//! This is what a load balancer or a multi-region DNS name does for users' clients: `/readyz` says
//! whether a node takes calls, and a client that loses its node asks again.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::sleep;
use tonic::transport::{Channel, Endpoint};

use crate::probe::endpoint_is_ready;

/// The wait before all endpoints are looked at again.
const LOOK_AGAIN_AFTER: Duration = Duration::from_millis(100);
/// A node that does not accept a connection for so long is not there.
const CONNECT_MAX: Duration = Duration::from_secs(1);
/// A connection without a sign of life is dropped after these.
const KEEPALIVE_EVERY: Duration = Duration::from_secs(1);
const KEEPALIVE_WAIT: Duration = Duration::from_secs(1);

/// All endpoints of a cluster. Clones are the same.
#[derive(Clone)]
pub(super) struct Endpoints(Arc<[String]>);

impl Endpoints {
    pub(super) fn new(endpoints: Vec<String>) -> Self {
        Endpoints(endpoints.into())
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// A channel to the first node that is ready, beginning with the `preferred` one. Waits until
    /// there is one.
    pub(super) async fn connect(&self, preferred: usize) -> Channel {
        loop {
            for place in 0..self.0.len() {
                let endpoint = &self.0[(preferred + place) % self.0.len()];
                if endpoint_is_ready(endpoint).await
                    && let Some(channel) = dial(endpoint).await
                {
                    return channel;
                }
            }
            sleep(LOOK_AGAIN_AFTER).await;
        }
    }
}

async fn dial(endpoint: &str) -> Option<Channel> {
    let endpoint = Endpoint::from_shared(format!("http://{endpoint}")).ok()?;
    let endpoint = endpoint
        .connect_timeout(CONNECT_MAX)
        .tcp_nodelay(true)
        .http2_keep_alive_interval(KEEPALIVE_EVERY)
        .keep_alive_timeout(KEEPALIVE_WAIT)
        .keep_alive_while_idle(true);
    endpoint.connect().await.ok()
}

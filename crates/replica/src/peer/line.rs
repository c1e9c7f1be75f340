//! Dialling one node, rarely while it does not answer.
//!
//! Every group that has a replica there asks for the connection again and again. What that costs
//! must not depend on how many they are: after a failed dial the line rests for a while, and
//! whoever asks meanwhile hears the same failure at once.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use hyper_util::rt::TokioIo;
use model::NodeName;
use tokio::time::{Instant, sleep, timeout};
use tonic::transport::Uri;
use tower::Service;

use super::tls::Tls;
use super::wan::far_away;
use super::wire::Wire;
use crate::network::{Connection, Network};

/// A dial that takes longer has failed.
const DIAL_MAX: Duration = Duration::from_secs(2);

/// How long a line rests after a failed dial: from the first, doubling, to the last. A node that
/// is back is found so much later.
const REST_MIN: Duration = Duration::from_millis(20);
const REST_MAX: Duration = Duration::from_millis(200);

/// So long after a failed dial it is known that the node was not there.
const FAILURE_KNOWN: Duration = Duration::from_secs(10);

/// The way to one node. Clones are the same.
#[derive(Clone)]
pub(super) struct Line(Arc<Inner>);

struct Inner {
    route: Route,
    dials: AtomicU64,
    rest: Mutex<Rest>,
}

/// How a node is dialled.
pub(super) struct Route {
    /// Through what.
    pub(super) network: Network,
    /// `host:port`.
    pub(super) address: String,
    /// Who must answer; any node of the cluster where it is not known.
    pub(super) name: Option<NodeName>,
    /// How far away it is made to be.
    pub(super) one_way: Option<Duration>,
    /// How the connection is secured.
    pub(super) tls: Option<Tls>,
}

/// No dial before `until`.
struct Rest {
    until: Option<Instant>,
    /// How long the next rest will be.
    next: Duration,
    /// When and why the last dial has failed, if it has.
    failure: Option<(Instant, String)>,
}

impl Line {
    pub(super) fn new(route: Route) -> Self {
        let rest = Rest {
            until: None,
            next: REST_MIN,
            failure: None,
        };
        Line(Arc::new(Inner {
            route,
            dials: AtomicU64::new(0),
            rest: Mutex::new(rest),
        }))
    }

    pub(super) fn dials(&self) -> u64 {
        self.0.dials.load(Ordering::Relaxed)
    }

    /// Why the last dial has failed; `None` if it has not, or was long ago: who is not asked for
    /// may be there.
    pub(super) fn failure(&self) -> Option<String> {
        let rest = self.rest();
        let recent = rest.failure.as_ref();
        let recent = recent.filter(|(at, _)| at.elapsed() < FAILURE_KNOWN);
        recent.map(|(_, why)| why.clone())
    }

    async fn dial(self) -> io::Result<TokioIo<Wire>> {
        let resting = self
            .rest()
            .until
            .is_some_and(|until| Instant::now() < until);
        if resting {
            return Err(io::Error::other("the node did not answer a moment ago"));
        }
        self.0.dials.fetch_add(1, Ordering::Relaxed);
        let connected = timeout(DIAL_MAX, self.0.route.connect()).await;
        let connected = connected.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()));
        let mut rest = self.rest();
        match connected {
            Ok(stream) => {
                rest.until = None;
                rest.next = REST_MIN;
                rest.failure = None;
                Ok(TokioIo::new(stream))
            }
            Err(failed) => {
                rest.until = Some(Instant::now() + rest.next);
                rest.next = REST_MAX.min(rest.next * 2);
                rest.failure = Some((Instant::now(), failed.to_string()));
                Err(failed)
            }
        }
    }

    fn rest(&self) -> MutexGuard<'_, Rest> {
        // Plain fields: whatever they are, the line works.
        self.0.rest.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Route {
    async fn connect(&self) -> io::Result<Wire> {
        let connection = self.network.connect(&self.address).await?;
        match self.one_way {
            None => self.secure(connection).await,
            Some(one_way) => {
                // To connect takes a round trip as well.
                sleep(2 * one_way).await;
                let far = far_away(connection, one_way);
                self.secure(Connection::new(far)).await
            }
        }
    }

    async fn secure(&self, connection: Connection) -> io::Result<Wire> {
        match &self.tls {
            Some(tls) => tls.connect(connection, self.name.as_ref()).await,
            None => Ok(Wire::plain(connection)),
        }
    }
}

impl Service<Uri> for Line {
    type Response = TokioIo<Wire>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Self::Response>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Uri) -> Self::Future {
        Box::pin(self.clone().dial())
    }
}

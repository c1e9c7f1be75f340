//! The listener for nodes.

use std::future::Future;
use std::io;
use std::time::Duration;

use futures::StreamExt;
use thiserror::Error;
use tokio::sync::oneshot;
use tokio::time::timeout;
use tonic::service::{InterceptorLayer, Routes};
use tonic::transport::Server;
use tracing::warn;

use super::stamp::Check;
use super::tls::Tls;
use super::wire::Wire;
use super::{CONNECTION_WINDOW_BYTES, KEEPALIVE_EVERY, KEEPALIVE_WAIT, Peers, STREAM_WINDOW_BYTES};
use crate::network::{Connection, Listener};

/// How long calls that are under way may take when the listener closes. Their streams end with
/// the replicas, which stop before.
const LAST_CALLS_MAX: Duration = Duration::from_secs(1);

/// Connections that are being secured at once, and how long one may take.
const HANDSHAKES_MAX: usize = 64;
const HANDSHAKE_MAX: Duration = Duration::from_secs(5);

/// The listener for nodes failed.
#[derive(Debug, Error)]
#[error("a listener for nodes and operators failed")]
pub struct ServeError(#[source] tonic::transport::Error);

/// Answers the calls of other nodes until `shutdown` resolves: `routes` to nodes of the same
/// cluster only, `open` to nodes that belong to none yet.
///
/// # Errors
/// [`ServeError`].
pub async fn serve(
    listener: impl Into<Listener>,
    routes: Routes,
    open: Routes,
    peers: Peers,
    shutdown: impl Future<Output = ()> + Send,
) -> Result<(), ServeError> {
    let tls = peers.settings().tls.clone();
    let checked = InterceptorLayer::new(Check(peers));
    let routes = routes.into_axum_router().layer(checked);
    let routes = Routes::from(routes.merge(open.into_axum_router().reset_fallback()));
    serve_open(listener, routes, tls, shutdown).await
}

/// Answers the calls of whoever connects until `shutdown` resolves; with `tls`, of whoever has a
/// certificate of the cluster.
///
/// # Errors
/// [`ServeError`].
pub async fn serve_open(
    listener: impl Into<Listener>,
    routes: Routes,
    tls: Option<Tls>,
    shutdown: impl Future<Output = ()> + Send,
) -> Result<(), ServeError> {
    let connections = listener.into().connections();
    let incoming = connections
        .map(move |connection| secured(tls.clone(), connection))
        .buffer_unordered(HANDSHAKES_MAX)
        .filter_map(|wire| std::future::ready(wire.map(Ok::<_, io::Error>)));
    let (close, closing) = oneshot::channel::<()>();
    let serving = Server::builder()
        .initial_stream_window_size(STREAM_WINDOW_BYTES)
        .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
        .http2_keepalive_interval(Some(KEEPALIVE_EVERY))
        .http2_keepalive_timeout(Some(KEEPALIVE_WAIT))
        .add_routes(routes)
        .serve_with_incoming_shutdown(incoming, async move {
            let _ = closing.await;
        });
    let mut serving = std::pin::pin!(serving);
    tokio::select! {
        served = &mut serving => return served.map_err(ServeError),
        () = shutdown => drop(close),
    }
    match timeout(LAST_CALLS_MAX, serving).await {
        Ok(served) => served.map_err(ServeError),
        Err(_) => Ok(()),
    }
}

/// A connection that may be used. Whoever is no node is told nothing, and heard of in the log.
async fn secured(tls: Option<Tls>, connection: io::Result<Connection>) -> Option<Wire> {
    let wire = match (tls, connection) {
        (None, Ok(connection)) => Ok(Wire::plain(connection)),
        (Some(tls), Ok(connection)) => {
            let accepted = timeout(HANDSHAKE_MAX, tls.accept(connection)).await;
            accepted.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
        }
        (_, Err(failed)) => Err(failed),
    };
    wire.inspect_err(|error| warn!(%error, "a connection was refused"))
        .ok()
}

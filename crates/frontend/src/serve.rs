//! The listener: all services of a node on one port, HTTP/2 for gRPC and HTTP/1.1 for a look.

use model::limits::GRPC_REQUEST_BYTES_MAX;
use proto::iam::iam_policy_server::IamPolicyServer;
use proto::pubsub::publisher_server::PublisherServer;
use proto::pubsub::schema_service_server::SchemaServiceServer;
use proto::pubsub::subscriber_server::SubscriberServer;
use replica::health::Health;
use replica::metrics::Metrics;
use replica::network::Listener;
use router::Router;
use thiserror::Error;
use tonic::codec::CompressionEncoding;
use tonic::service::Routes;
use tonic::transport::Server;
use tower::util::MapResponseLayer;

use crate::Shutdown;
use crate::health;
use crate::probe::pages;
use crate::publisher::PublisherService;
use crate::subscriber::SubscriberService;
use crate::undecodable;
use crate::unsupported::Unsupported;

/// Windows of HTTP/2: what may be on its way before the reader has taken it. A publish of ten
/// megabytes, or a burst of deliveries, must not wait for a round trip each 64 KiB.
const STREAM_WINDOW_BYTES: u32 = 4 * 1024 * 1024;
const CONNECTION_WINDOW_BYTES: u32 = 16 * 1024 * 1024;

/// The listener failed.
#[derive(Debug, Error)]
pub enum ServeError {
    /// Reflection does not read its own descriptors.
    #[error("reflection can't be built")]
    Reflection(#[source] tonic_reflection::server::Error),
    /// The transport.
    #[error("the listener failed")]
    Transport(#[source] tonic::transport::Error),
}

/// Serves clients until the shutdown begins and their calls are done.
///
/// # Errors
/// [`ServeError`] when the listener fails.
pub async fn serve(
    router: Router,
    health: Health,
    metrics: Metrics,
    listener: Listener,
    mut shutdown: Shutdown,
) -> Result<(), ServeError> {
    let routes = routes(router, health, metrics, shutdown.clone()).await?;
    Server::builder()
        .accept_http1(true)
        .initial_stream_window_size(STREAM_WINDOW_BYTES)
        .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
        .layer(MapResponseLayer::new(undecodable::answered))
        .add_routes(routes)
        .serve_with_incoming_shutdown(listener.connections(), async move {
            shutdown.begun().await;
        })
        .await
        .map_err(ServeError::Transport)
}

/// All services, and the pages beside them.
async fn routes(
    router: Router,
    node: Health,
    metrics: Metrics,
    shutdown: Shutdown,
) -> Result<Routes, ServeError> {
    let reflection = || {
        tonic_reflection::server::Builder::configure()
            .register_encoded_file_descriptor_set(proto::FILE_DESCRIPTOR_SET)
            .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
    };
    let health = health::service(node.clone(), shutdown.clone()).await;
    let publisher = PublisherServer::new(PublisherService::new(router.clone()))
        .max_decoding_message_size(GRPC_REQUEST_BYTES_MAX)
        .accept_compressed(CompressionEncoding::Gzip)
        .send_compressed(CompressionEncoding::Gzip);
    let subscriber = SubscriberServer::new(SubscriberService::new(router, shutdown))
        .max_decoding_message_size(GRPC_REQUEST_BYTES_MAX)
        .accept_compressed(CompressionEncoding::Gzip);
    let mut routes = Routes::from(pages(node, metrics));
    routes = routes
        .add_service(publisher)
        .add_service(subscriber)
        .add_service(SchemaServiceServer::new(Unsupported))
        .add_service(IamPolicyServer::new(Unsupported))
        .add_service(health)
        .add_service(reflection().build_v1().map_err(ServeError::Reflection)?)
        .add_service(
            reflection()
                .build_v1alpha()
                .map_err(ServeError::Reflection)?,
        );
    Ok(routes)
}

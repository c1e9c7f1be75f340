//! Which node a command talks to, and for which project.

use std::time::Duration;

use clap::Args;
use model::limits::GRPC_REQUEST_BYTES_MAX;
use proto::pubsub::publisher_client::PublisherClient;
use proto::pubsub::subscriber_client::SubscriberClient;
use tonic::transport::{Channel, Endpoint};

use super::Failure;

/// How long a node may take to accept a connection.
const CONNECT_MAX: Duration = Duration::from_secs(5);
/// How long an answer, or the first sign of a stream, may take. A pull waits for up to 20 s.
const ANSWER_MAX: Duration = Duration::from_secs(60);
/// What a node may send on one stream before it hears that it was read.
const STREAM_WINDOW_BYTES: u32 = 8 * 1024 * 1024;
/// The same for all streams of a connection together.
const CONNECTION_WINDOW_BYTES: u32 = 16 * 1024 * 1024;

/// The variable that names the node.
const VARIABLE: &str = "PUBSUB_EMULATOR_HOST";
/// The node, where nothing is said.
const DEFAULT: &str = "localhost:8085";

/// Which node, and which project.
#[derive(Clone, Debug, Args)]
pub struct Target {
    /// The node, as host:port.
    #[arg(
        long,
        global = true,
        env = VARIABLE,
        default_value = DEFAULT,
        value_name = "HOST:PORT"
    )]
    pub(crate) endpoint: String,
    /// The project of names that are given without one.
    #[arg(
        long,
        global = true,
        env = "PUBSUB_PROJECT_ID",
        default_value = "orderly"
    )]
    pub(crate) project: String,
}

impl Target {
    /// So many targets: these nodes in turn, or this one each time where none are named.
    pub(crate) fn through(&self, nodes: &[String], count: usize) -> Vec<Target> {
        let one = [self.endpoint.clone()];
        let nodes = match nodes {
            [] => &one[..],
            nodes => nodes,
        };
        let turns = nodes.iter().cycle().take(count);
        let at = |node: &String| Target {
            endpoint: node.clone(),
            project: self.project.clone(),
        };
        turns.map(at).collect()
    }

    /// Whether the node was typed.
    pub(crate) fn is_told(&self) -> bool {
        let by_environment = std::env::var(VARIABLE);
        let otherwise = by_environment.as_deref().unwrap_or(DEFAULT);
        self.endpoint != otherwise
    }

    /// Connects to the node.
    pub(crate) async fn channel(&self) -> Result<Channel, Failure> {
        let unreachable = |why: tonic::transport::Error| Failure::Unreachable {
            endpoint: self.endpoint.clone(),
            why: root_cause(&why),
        };
        let uri = match self.endpoint.starts_with("http://") {
            true => self.endpoint.clone(),
            false => format!("http://{}", self.endpoint),
        };
        let endpoint = Endpoint::from_shared(uri)
            .map_err(unreachable)?
            .connect_timeout(CONNECT_MAX)
            .timeout(ANSWER_MAX)
            .tcp_nodelay(true)
            .initial_stream_window_size(STREAM_WINDOW_BYTES)
            .initial_connection_window_size(CONNECTION_WINDOW_BYTES);
        endpoint.connect().await.map_err(unreachable)
    }

    /// A client of the Publisher service.
    pub(crate) async fn publisher(&self) -> Result<PublisherClient<Channel>, Failure> {
        let client = PublisherClient::new(self.channel().await?);
        Ok(client.max_decoding_message_size(2 * GRPC_REQUEST_BYTES_MAX))
    }

    /// A client of the Subscriber service.
    pub(crate) async fn subscriber(&self) -> Result<SubscriberClient<Channel>, Failure> {
        let client = SubscriberClient::new(self.channel().await?);
        Ok(client.max_decoding_message_size(2 * GRPC_REQUEST_BYTES_MAX))
    }
}

/// The innermost of an error's causes, which names the trouble.
fn root_cause(error: &dyn std::error::Error) -> String {
    let mut cause = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    cause.to_string()
}

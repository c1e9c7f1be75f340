//! How a client finds a node: several endpoints, of which it uses one that says that it is ready.
//! Users' clients have a load balancer or a name with several addresses for that.

use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{interval, timeout};
use tonic::transport::{Channel, Endpoint};

/// A node that does not accept a connection, or says nothing of itself, for so long is not there.
const ANSWER_MAX: Duration = Duration::from_secs(1);
/// A connection without a sign of life is dropped after two of these.
const KEEPALIVE: Duration = Duration::from_secs(1);
/// Between two rounds over endpoints of which none is ready.
const ROUND_EVERY: Duration = Duration::from_millis(50);

/// The endpoints of a client, and which one it tries first.
#[derive(Clone)]
pub(crate) struct Way {
    endpoints: Vec<String>,
    first: usize,
}

impl Way {
    /// A way to `endpoints`, beginning with the one of this number.
    pub(crate) fn new(endpoints: &[String], first: usize) -> Self {
        Way {
            endpoints: endpoints.to_vec(),
            first,
        }
    }

    /// A connection to the first endpoint that is ready. Waits until there is one.
    pub(crate) async fn channel(&self) -> Channel {
        let mut round = interval(ROUND_EVERY);
        loop {
            round.tick().await;
            for place in 0..self.endpoints.len() {
                let endpoint = &self.endpoints[(self.first + place) % self.endpoints.len()];
                if answers_well(endpoint, "/readyz").await
                    && let Ok(channel) = to(endpoint).connect().await
                {
                    return channel;
                }
            }
        }
    }
}

/// A connection to one endpoint, made when it is needed and again when it is lost.
pub(crate) fn to(endpoint: &str) -> Endpoint {
    let endpoint = Endpoint::from_shared(format!("http://{endpoint}")).expect("an address");
    endpoint
        .connect_timeout(ANSWER_MAX)
        .tcp_nodelay(true)
        .http2_keep_alive_interval(KEEPALIVE)
        .keep_alive_timeout(KEEPALIVE)
        .keep_alive_while_idle(true)
}

/// Whether a node answers 200 to the question of a load balancer.
pub(crate) async fn answers_well(endpoint: &str, page: &str) -> bool {
    let answer = timeout(ANSWER_MAX, ask(endpoint, page)).await;
    matches!(answer, Ok(Ok(answer)) if answer.starts_with("HTTP/1.1 200"))
}

/// What a node answers to a GET: its head and its body.
pub(crate) async fn ask(endpoint: &str, page: &str) -> std::io::Result<String> {
    let mut stream = TcpStream::connect(endpoint).await?;
    let request = format!("GET {page} HTTP/1.1\r\nHost: {endpoint}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    Ok(answer)
}

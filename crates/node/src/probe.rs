//! Asks a node whether it is ready, as a load balancer does: `GET /readyz`.

use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// A node that does not answer for so long is not ready.
const ANSWER_MAX: Duration = Duration::from_secs(1);
/// No answer worth reading is longer.
const ANSWER_BYTES_MAX: u64 = 16 * 1024;

/// Whether the node that listens on this port of loopback is ready.
pub(crate) async fn is_ready(port: u16) -> bool {
    is_well(&format!("127.0.0.1:{port}"), "/readyz").await
}

/// Whether the groups stand where they should, as far as the node on this port of loopback knows.
pub(crate) async fn is_placed(port: u16) -> bool {
    is_well(&format!("127.0.0.1:{port}"), "/readyz/placement").await
}

/// Whether the node at `host:port` says that it is ready; `None` if it says nothing.
pub(crate) async fn endpoint_says_ready(endpoint: &str) -> Option<bool> {
    says(endpoint, "/readyz").await
}

async fn is_well(endpoint: &str, page: &str) -> bool {
    says(endpoint, page).await == Some(true)
}

async fn says(endpoint: &str, page: &str) -> Option<bool> {
    let answer = timeout(ANSWER_MAX, ask(endpoint, page)).await.ok()?.ok()?;
    Some(answer.starts_with("HTTP/1.1 200"))
}

async fn ask(endpoint: &str, page: &str) -> std::io::Result<String> {
    let mut stream = TcpStream::connect(endpoint).await?;
    let request = format!("GET {page} HTTP/1.1\r\nHost: {endpoint}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut answer = String::new();
    let mut limited = stream.take(ANSWER_BYTES_MAX);
    limited.read_to_string(&mut answer).await?;
    Ok(answer)
}

//! The other nodes of the cluster: how they are reached, and how their calls are answered.
//!
//! - [`peers`]: who they are, and the channels to them.
//! - [`line`]: dialling one node, rarely while it does not answer.
//! - [`stamp`]: what every call says of its caller, and how it is checked.
//! - [`serve`]: the listener for nodes.

mod line;
mod peers;
mod serve;
mod stamp;

pub use peers::{PeerAddress, Peers, Unreachable, Use};
pub use serve::{ServeError, serve};
pub use stamp::{Caller, PeerChannel};

use std::time::Duration;

use model::{NodeId, RegionName};

/// What a node tells its peers of itself.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The id of the cluster. Nodes of other clusters are refused.
    pub cluster: String,
    /// This node.
    pub node: NodeId,
    /// The region of this node.
    pub region: RegionName,
}

/// Windows of HTTP/2: what may be on its way before the reader has taken it. Between regions a
/// window is emptied once in a round trip, so that 4 MiB are 50 MB/s at 80 ms.
const STREAM_WINDOW_BYTES: u32 = 4 * 1024 * 1024;
const CONNECTION_WINDOW_BYTES: u32 = 16 * 1024 * 1024;

/// A connection that carries nothing is asked for a sign of life so often, and dropped without
/// one: a network that eats packets tells nobody.
const KEEPALIVE_EVERY: Duration = Duration::from_secs(2);
const KEEPALIVE_WAIT: Duration = Duration::from_secs(4);

//! The other nodes of the cluster: how they are reached, and how their calls are answered.
//!
//! - `peers`: who they are, and the channels to them.
//! - `line`: dialling one node, rarely while it does not answer.
//! - `stamp`: what every call says of its caller, and how it is checked.
//! - `serve`: the listener for nodes, and the one for operators.
//! - `wire`: a connection, whatever it is made of.
//! - `tls`: mutual TLS; `identity`: which node a certificate names.
//! - `wan`: the distance between regions, emulated.

mod identity;
mod line;
mod peers;
mod serve;
mod stamp;
mod tls;
mod wan;
mod wire;

pub use peers::{PeerAddress, Peers, Unreachable, Use, channel_of_stranger};
pub use serve::{ServeError, serve, serve_open};
pub use stamp::{Caller, PeerChannel};
pub use tls::{InvalidTls, Tls, TlsFile};

use std::time::Duration;

use model::{NodeId, RegionName};

use crate::network::Network;

/// What a node tells its peers of itself, and how it talks to them.
#[derive(Clone)]
pub struct Settings {
    /// The id of the cluster. Nodes of other clusters are refused.
    pub cluster: String,
    /// This node.
    pub node: NodeId,
    /// The region of this node.
    pub region: RegionName,
    /// How long bytes take to nodes of other regions and back, each way, beyond what the network
    /// does: a demonstration emulates distance.
    pub wan_one_way: Option<Duration>,
    /// How connections are secured; not at all without it.
    pub tls: Option<Tls>,
    /// What connections are made of.
    pub network: Network,
}

impl Settings {
    /// The settings of a node whose connections are not secured, on a network of its own.
    #[must_use]
    pub fn plain(cluster: String, node: NodeId, region: RegionName) -> Self {
        Settings {
            cluster,
            node,
            region,
            wan_one_way: None,
            tls: None,
            network: Network::sockets(),
        }
    }
}

/// Windows of HTTP/2: what may be on its way before the reader has taken it. Between regions a
/// window is emptied once in a round trip, so that 4 MiB are 50 MB/s at 80 ms.
const STREAM_WINDOW_BYTES: u32 = 4 * 1024 * 1024;
const CONNECTION_WINDOW_BYTES: u32 = 16 * 1024 * 1024;

/// A connection that carries nothing is asked for a sign of life so often, and dropped without
/// one: a network that eats packets tells nobody.
const KEEPALIVE_EVERY: Duration = Duration::from_secs(2);
const KEEPALIVE_WAIT: Duration = Duration::from_secs(4);

#[cfg(test)]
mod tests;

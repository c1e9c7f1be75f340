//! What a node is told.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use model::{NodeId, NodeName, RegionName, ZoneName};
use store::Called;

use crate::config::Tls;

/// What a node works with.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The data folder.
    pub data_dir: PathBuf,
    /// Where clients connect.
    pub listen: SocketAddr,
    /// Where operators connect: secured as between nodes if other machines reach it.
    pub admin_listen: SocketAddr,
    /// A node that is silent for so long is replaced by others, where this one leads.
    pub replace_after: Duration,
    /// The shards that each region gets, in a cluster that this node founds.
    pub shards: u16,
    /// The registry groups of a cluster that this node founds.
    pub registries: u16,
    /// How much is kept, and for how long.
    pub upkeep: Upkeep,
    /// Who the node is among others; `None` for a node that is a cluster by itself.
    pub member: Option<Member>,
}

/// How much a node keeps in memory and in its logs, and how often it tidies up.
#[derive(Clone, Copy, Debug)]
pub struct Upkeep {
    /// Of its disk.
    pub limits: store::Limits,
    /// How often logs are cut.
    pub cut_logs_every: Duration,
    /// Entries that a log keeps for a replica that lags.
    pub lag_max: u64,
}

impl Default for Upkeep {
    fn default() -> Self {
        // They are the same for every node.
        let replicas = replica::Settings::alone(NodeId(0));
        Upkeep {
            limits: store::Limits::default(),
            cut_logs_every: replicas.cut_log_every,
            lag_max: replicas.lag_max,
        }
    }
}

/// A node of a cluster of several.
#[derive(Clone, Debug)]
pub struct Member {
    /// Its name.
    pub name: NodeName,
    /// Its region.
    pub region: RegionName,
    /// Its failure domain inside the region.
    pub zone: ZoneName,
    /// Where clients reach it, as others are told.
    pub client_address: String,
    /// Where other nodes reach it, as they are told.
    pub peer_address: String,
    /// Where it listens for other nodes.
    pub peer_listen: SocketAddr,
    /// Whom it asks to be let in while its folder is empty.
    pub join: Vec<String>,
    /// The delay of every byte to and from nodes of other regions, for demonstrations.
    pub wan_one_way: Duration,
    /// The longest round trip between two regions of the cluster, where it is known.
    pub region_round_trip: Option<Duration>,
    /// How it proves to other nodes who it is.
    pub tls: Option<Tls>,
}

impl Member {
    /// What its data folder is told of it.
    pub(super) fn called(&self) -> Called {
        Called {
            name: self.name.clone(),
            region: self.region.clone(),
        }
    }
}

/// So far above the port for clients is, by default, the port for operators: a command that knows
/// the one knows the other.
pub(crate) const ADMIN_PORTS_ABOVE: u16 = 2_000;

/// Where operators connect by default: on loopback, beside where clients do if they do so there
/// too. Any free port where clients have any free port, or where there is none so far above.
pub(crate) fn admin_beside(listen: SocketAddr) -> SocketAddr {
    let port = match listen.port() {
        0 => 0,
        port => port.checked_add(ADMIN_PORTS_ABOVE).unwrap_or(0),
    };
    match listen.ip() {
        here if here.is_loopback() => SocketAddr::new(here, port),
        _ => SocketAddr::from(([127, 0, 0, 1], port)),
    }
}

impl Default for Settings {
    fn default() -> Self {
        let listen = SocketAddr::from(([127, 0, 0, 1], 8085));
        Settings {
            data_dir: "data".into(),
            listen,
            admin_listen: admin_beside(listen),
            replace_after: Duration::from_secs(5 * 60),
            shards: 4,
            registries: 1,
            upkeep: Upkeep::default(),
            member: None,
        }
    }
}

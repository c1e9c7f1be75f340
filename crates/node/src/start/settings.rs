//! What a node is told.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use model::{NodeName, RegionName, ZoneName};

use crate::config::Tls;

/// What a node works with.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The data folder.
    pub data_dir: PathBuf,
    /// Where clients connect.
    pub listen: SocketAddr,
    /// The shards that each region gets, in a cluster that this node founds.
    pub shards: u16,
    /// The registry groups of a cluster that this node founds.
    pub registries: u16,
    /// Who the node is among others; `None` for a node that is a cluster by itself.
    pub member: Option<Member>,
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
    /// How it proves to other nodes who it is.
    pub tls: Option<Tls>,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            data_dir: "data".into(),
            listen: SocketAddr::from(([127, 0, 0, 1], 8085)),
            shards: 4,
            registries: 1,
            member: None,
        }
    }
}

//! The birth of the cluster.

use model::ClusterSecret;
use serde::{Deserialize, Serialize};

use super::rejected::Stop;
use super::table::cluster::{Cluster, ClusterKey};
use super::{Outcome, Rejected, Reply};
use crate::kv::{Overlay, ViewExt};

/// Founds the cluster: the first entry of its log, and never a later one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Found {
    /// The key of the cluster's hashes.
    pub secret: ClusterSecret,
    /// How many shards there are, numbered from one.
    pub shards: u16,
}

impl Found {
    pub(super) fn apply(&self, overlay: &mut Overlay<'_>) -> Result<Outcome, Stop> {
        // A second secret would void every ack id and hide every strand.
        if overlay.row::<Cluster>(&ClusterKey)?.is_some() {
            return Err(Rejected::AlreadyFounded.into());
        }
        let cluster = Cluster {
            secret: self.secret,
            shards: self.shards,
        };
        overlay.put(&ClusterKey, &cluster);
        Ok(Outcome::only(Reply::Done))
    }
}

//! What the replicas of a node can be told.

use std::time::Duration;

use model::{GroupId, NodeId};

use crate::raft::Timing;

/// How the replicas of a node run.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// The node.
    pub node: NodeId,
    /// The timing of the control group and of registry groups.
    pub control: Timing,
    /// The timing of shards.
    pub shards: Timing,
    /// How often the log is cut behind what is flushed. It lags by two such spans.
    pub cut_log_every: Duration,
    /// How long a shutdown waits for calls that were taken up before.
    pub drain_max: Duration,
}

impl Settings {
    /// The settings of a node that is a cluster by itself.
    #[must_use]
    pub fn alone(node: NodeId) -> Self {
        Settings::with(node, Timing::ALONE)
    }

    /// The settings of a node whose groups live within one region.
    #[must_use]
    pub fn of_zone(node: NodeId) -> Self {
        Settings::with(node, Timing::ZONE)
    }

    /// The timing of a group.
    pub(crate) fn timing(&self, group: GroupId) -> Timing {
        match group {
            GroupId::Control | GroupId::Registry(_) => self.control,
            GroupId::Shard(_) => self.shards,
        }
    }

    fn with(node: NodeId, timing: Timing) -> Self {
        Settings {
            node,
            control: timing,
            shards: timing,
            cut_log_every: Duration::from_secs(5),
            drain_max: Duration::from_secs(5),
        }
    }
}

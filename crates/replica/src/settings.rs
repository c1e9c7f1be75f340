//! What the replicas of a node can be told.

use std::time::Duration;

use model::NodeId;
use model::limits::LINK_BEAT_EVERY;

use crate::raft::Timing;

/// A restart of a machine takes less. To copy everything that a node had costs the others more
/// than to wait.
const REPLACE_AFTER: Duration = Duration::from_secs(5 * 60);

/// How the replicas of a node run.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// The node.
    pub node: NodeId,
    /// The timing of groups whose voters are within one region.
    pub within: Timing,
    /// The timing of groups whose voters are in several regions, or not known yet.
    pub across: Timing,
    /// Whether groups that are to survive a region have the timing of several from their first day,
    /// since a group keeps its timing until the node starts again.
    pub spreads: bool,
    /// How often the log is cut behind what is flushed. It lags by two such spans.
    pub cut_log_every: Duration,
    /// Entries that a leader keeps in its log for a replica that lags. One that lags more gets a
    /// checkpoint instead, as does every one when the disk is filling up.
    pub lag_max: u64,
    /// How long a shutdown waits for calls that were taken up before.
    pub drain_max: Duration,
    /// A node that is silent for so long gets no replicas, and those that it has move to others
    /// where there are any. The leader of the control group goes by its own setting.
    pub replace_after: Duration,
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

    /// The settings of a node whose groups live within regions and across them.
    #[must_use]
    pub fn of_regions(node: NodeId) -> Self {
        Settings {
            across: Timing::REGION,
            ..Settings::of_zone(node)
        }
    }

    /// The settings of a node of a cluster that is or will be in several regions, with such a round
    /// trip at most between any two of them.
    #[must_use]
    pub fn of_distant_regions(node: NodeId, round_trip: Duration) -> Self {
        Settings {
            across: Timing::over(round_trip),
            spreads: true,
            ..Settings::of_zone(node)
        }
    }

    /// How long a frontend that is well takes to open a session again at a leader that has lost the
    /// way to it, at most. Both notice the loss within one sign of life of each other; the frontend
    /// then dials, secures the connection, hears a first sign of life and says what it opens: four
    /// round trips and a pause, and a heartbeat is longer than a round trip.
    pub(crate) fn back_within(&self) -> Duration {
        LINK_BEAT_EVERY + self.across.heartbeat * 4
    }

    fn with(node: NodeId, timing: Timing) -> Self {
        Settings {
            node,
            within: timing,
            across: timing,
            spreads: false,
            cut_log_every: Duration::from_secs(5),
            lag_max: 20_000,
            drain_max: Duration::from_secs(5),
            replace_after: REPLACE_AFTER,
        }
    }
}

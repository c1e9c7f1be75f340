//! The timing of a group.

use std::sync::Arc;
use std::time::Duration;

use model::GroupId;
use openraft::{Config, SnapshotPolicy};

/// Log entries in one message to a follower.
const REPLICATED_ENTRIES_MAX: u64 = 300;
/// How long a checkpoint may take from one node to another. It is no bound on what is waited for:
/// connections that died are found out by other means.
const CHECKPOINT_TAKES_MAX: Duration = Duration::from_secs(60 * 60);

/// How fast a group notices that its leader is gone. It follows from the round trip between the
/// group's voters, so that it differs between classes of groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// How often a leader says that it lives.
    pub heartbeat: Duration,
    /// Without a sign of the leader for this long, a follower may campaign. Also how long a
    /// leader may answer reads after its last sign of a majority.
    pub election_min: Duration,
    /// The longest that a follower waits before it campaigns.
    pub election_max: Duration,
}

impl Timing {
    /// For the only voter. Nobody waits for a sign of it, and it campaigns at once when it
    /// starts; so it ticks slowly, which is most of what an idle group costs.
    pub const ALONE: Timing = Timing {
        heartbeat: Duration::from_secs(1),
        election_min: Duration::from_secs(3),
        election_max: Duration::from_secs(6),
    };

    /// For voters within one region, at a round trip of a few milliseconds at most.
    pub const ZONE: Timing = Timing {
        heartbeat: Duration::from_millis(100),
        election_min: Duration::from_millis(300),
        election_max: Duration::from_millis(600),
    };

    /// For voters over regions, at a round trip of about 80 ms.
    pub const REGION: Timing = Timing {
        heartbeat: Duration::from_millis(150),
        election_min: Duration::from_millis(400),
        election_max: Duration::from_millis(800),
    };
}

/// Up to such a round trip the timing of regions is [`Timing::REGION`].
const ROUND_TRIP_REGION: Duration = Duration::from_millis(80);

impl Timing {
    /// For voters over regions, where the longest round trip between two of them is so long.
    ///
    /// A heartbeat that was not answered before the next one is due counts as lost, so that it
    /// comes less often than answers do; and three of them must be lost before anyone campaigns.
    #[must_use]
    pub fn over(round_trip: Duration) -> Timing {
        let longer = round_trip.saturating_sub(ROUND_TRIP_REGION);
        let heartbeat = Timing::REGION.heartbeat + longer;
        let election_min = Timing::REGION.election_min + longer * 3;
        Timing {
            heartbeat,
            election_min,
            election_max: election_min * 2,
        }
    }
}

/// openraft's settings for one group.
///
/// # Panics
/// When the timing is out of order, for example with a heartbeat longer than an election.
pub(super) fn config(group: GroupId, timing: Timing) -> Arc<Config> {
    let config = Config {
        cluster_name: group.to_string(),
        heartbeat_interval: millis(timing.heartbeat),
        election_timeout_min: millis(timing.election_min),
        election_timeout_max: millis(timing.election_max),
        max_payload_entries: REPLICATED_ENTRIES_MAX,
        install_snapshot_timeout: millis(CHECKPOINT_TAKES_MAX),
        // Without it, a node that comes back from a partition deposes a healthy leader.
        enable_pre_vote: Some(true),
        // A leader that hears no majority falls silent from time to time, for as long as an
        // election takes: followers that hear it, while others don't, would wait for ever.
        quorum_loss_probe_interval: Some(
            2 * millis(timing.election_max) + millis(timing.election_min),
        ),
        // A leader that resumed its old term would count its deliveries from one again, and so
        // give out ids of deliveries that exist already.
        enable_leader_restore: Some(false),
        // Checkpoints and the cutting of the log follow from what is on disk: see `checkpoint`.
        snapshot_policy: SnapshotPolicy::Never,
        max_in_snapshot_log_to_keep: u64::MAX,
        ..Config::default()
    };
    let config = config.validate();
    Arc::new(config.expect("settings are checked where they are read"))
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heartbeats_are_answered_before_the_next_however_far_the_regions_are() {
        assert_eq!(Timing::over(Duration::from_millis(20)), Timing::REGION);
        assert_eq!(Timing::over(ROUND_TRIP_REGION), Timing::REGION);
        for millis in [81, 150, 300, 1_000] {
            let round_trip = Duration::from_millis(millis);
            let timing = Timing::over(round_trip);
            assert!(timing.heartbeat > round_trip, "{timing:?}");
            assert!(
                timing.election_min >= timing.heartbeat * 5 / 2,
                "{timing:?}"
            );
            assert!(timing.election_max >= timing.election_min * 2, "{timing:?}");
            config(GroupId::Control, timing);
        }
    }
}

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
    /// For so long after a sign of the leader nobody votes for another. Also how long a leader may
    /// answer reads after its last sign of a majority.
    pub lease: Duration,
    /// The shortest time that a follower waits beyond that, before it campaigns. The longest is as
    /// long as the lease: openraft has one setting for both. It is also how long a candidate waits
    /// for a vote, which takes a round trip, and longer on busy machines.
    pub wait_min: Duration,
}

impl Timing {
    /// For the only voter. Nobody waits for a sign of it, and it campaigns at once when it
    /// starts; so it ticks slowly, which is most of what an idle group costs.
    pub const ALONE: Timing = Timing {
        heartbeat: Duration::from_secs(1),
        lease: Duration::from_secs(6),
        wait_min: Duration::from_secs(3),
    };

    /// For voters within one region, at a round trip of a few milliseconds at most.
    pub const ZONE: Timing = Timing {
        heartbeat: Duration::from_millis(100),
        lease: Duration::from_millis(600),
        wait_min: Duration::from_millis(300),
    };

    /// For voters over regions, at a round trip of about 80 ms: they campaign 850 to 1,100 ms after
    /// the last sign of a leader.
    pub const REGION: Timing = Timing {
        heartbeat: Duration::from_millis(150),
        lease: Duration::from_millis(550),
        wait_min: Duration::from_millis(300),
    };
}

/// Up to such a round trip the timing of regions is [`Timing::REGION`].
const ROUND_TRIP_REGION: Duration = Duration::from_millis(80);

impl Timing {
    /// For voters over regions, where the longest round trip between two of them is so long.
    ///
    /// A heartbeat that was not answered before the next one is due counts as lost, so that it
    /// comes less often than answers do. A leader keeps its lease where one of them is lost, and
    /// three of them at least must be lost before anyone campaigns.
    #[must_use]
    pub fn over(round_trip: Duration) -> Timing {
        let longer = round_trip.saturating_sub(ROUND_TRIP_REGION);
        Timing {
            heartbeat: Timing::REGION.heartbeat + longer,
            lease: Timing::REGION.lease + longer * 3,
            wait_min: Timing::REGION.wait_min + longer,
        }
    }

    /// How long a group is without a leader after it has lost one, at most, unless an election
    /// fails twice: each takes as long as its candidates wait, and some round trips, of which one
    /// is shorter than a heartbeat.
    pub(crate) fn election_max(self) -> Duration {
        self.lease * 3 + self.heartbeat * 4
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
        // openraft waits for the lease, which is the maximum here, and then for a time between both.
        election_timeout_min: millis(timing.wait_min),
        election_timeout_max: millis(timing.lease),
        max_payload_entries: REPLICATED_ENTRIES_MAX,
        install_snapshot_timeout: millis(CHECKPOINT_TAKES_MAX),
        // Without it, a node that comes back from a partition deposes a healthy leader.
        enable_pre_vote: Some(true),
        // A leader that hears no majority falls silent from time to time, for as long as an
        // election takes: followers that hear it, while others don't, would wait for ever.
        quorum_loss_probe_interval: Some(2 * millis(timing.lease) + millis(timing.wait_min)),
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
            let one_is_lost = timing.heartbeat * 2 + round_trip;
            assert!(timing.lease > one_is_lost, "{timing:?}");
            let campaigns = timing.lease + timing.wait_min;
            assert!(campaigns > timing.heartbeat * 3 + round_trip, "{timing:?}");
            assert!(timing.wait_min > round_trip * 21 / 20, "{timing:?}");
            config(GroupId::Control, timing);
        }
    }
}

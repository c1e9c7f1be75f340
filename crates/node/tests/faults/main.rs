//! Clusters of real processes that are broken in every way that a machine can be, under load.

#[path = "../audit/mod.rs"]
mod audit;
mod cluster;
#[path = "../../../store/tests/rig/disk.rs"]
mod disk;
mod member;
mod operator;
#[path = "../node/process.rs"]
#[expect(dead_code, reason = "the cases use all of it")]
mod process;
mod regions;
mod unforgiving;

mod allowed_regions;
mod catalogue_everywhere;
mod changed_policy;
mod cut_region;
mod demo;
mod departing_node;
mod drained_frontends;
mod drained_node;
mod drill;
mod full_disks;
mod killed_nodes;
mod lonely_leader;
mod lost_disk;
mod lost_zone;
mod many_topics;
mod moved_keys;
mod names;
mod new_addresses;
mod paused_nodes;
mod power_cut;
mod rolling_restart;
mod stalled_consumer;
mod strangers;
mod swapped_majorities;
mod wrong_folder;

/// The pace of each publisher.
const PACE: std::time::Duration = std::time::Duration::from_millis(20);
/// Acks between two faults.
const ACKS: usize = 100;

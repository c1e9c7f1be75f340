//! Clusters of real processes that are broken in every way that a machine can be, under load.

#[path = "../audit/mod.rs"]
mod audit;
mod cluster;
mod member;
mod operator;
#[path = "../node/process.rs"]
#[expect(dead_code, reason = "the cases use all of it")]
mod process;

mod catalogue_everywhere;
mod departing_node;
mod drained_node;
mod killed_nodes;
mod lost_disk;
mod paused_nodes;
mod power_cut;
mod rolling_restart;

/// The pace of each publisher.
const PACE: std::time::Duration = std::time::Duration::from_millis(20);
/// Acks between two faults.
const ACKS: usize = 100;

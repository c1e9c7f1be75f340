//! Real processes: the binary as a user runs it, its folder on a real disk, its port on loopback.

#[path = "../audit/mod.rs"]
#[expect(dead_code, reason = "tests of clusters use all of it")]
mod audit;
mod command;
mod command_line;
mod configuration;
mod crash;
mod drills;
mod folder;
mod metrics;
#[path = "../node/mod.rs"]
#[expect(dead_code, reason = "the cases use all of it")]
mod node;
mod panic;

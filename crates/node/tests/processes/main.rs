//! Real processes: the binary as a user runs it, its folder on a real disk, its port on loopback.

mod command;
mod command_line;
mod crash;
mod folder;
mod load;
#[path = "../node/mod.rs"]
#[expect(dead_code, reason = "the cases use all of it")]
mod node;
mod panic;
mod recorder;

//! The copies: Raft groups on this node, and the dispatch loops of their leaders.
//!
//! - `raft`: the one room that names openraft.
//! - [`clock`]: the one place that reads a clock.

pub mod clock;
mod raft;

pub use clock::Clock;
pub use raft::{Stopped, Timing};

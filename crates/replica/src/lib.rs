//! The copies: Raft groups on this node, and the dispatch loops of their leaders.
//!
//! - [`clock`]: the one place that reads a clock.

pub mod clock;

pub use clock::Clock;

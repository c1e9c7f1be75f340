//! The proof: engines and nodes in one thread from one seed, and the checkers of every promise.
//!
//! - [`history`]: what clients did and saw, in order. A simulated cluster writes one, and so does
//!   a test of real processes.
//! - [`invariants`]: one checker for each promise, which reads a history and nothing else.
//! - `nodes`: whole nodes from one seed, and the verdict; only with the feature of that name.
//! - [`run()`]: a cluster of one shard from one seed, and the verdict.

mod chance;
mod cluster;
pub mod history;
pub mod invariants;
#[cfg(feature = "nodes")]
pub mod nodes;
mod plan;
mod run;

pub use run::{Run, run};

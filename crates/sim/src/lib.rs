//! The proof: engines and nodes in one thread from one seed, and the checkers of every promise.
//!
//! - [`history`]: what clients did and saw, in order. A simulated cluster writes one, and so does
//!   a test of real processes.
//! - [`invariants`]: one checker for each promise, which reads a history and nothing else.

pub mod history;
pub mod invariants;

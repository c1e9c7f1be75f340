//! The process: configuration, wiring, administration, and the command line of orderly.
//!
//! - [`start`]: builds a node, one crate after another.
//! - [`cli`]: the commands.
//! - `bench`: load on any endpoint, measured and checked.

mod bench;
pub mod cli;
pub mod start;

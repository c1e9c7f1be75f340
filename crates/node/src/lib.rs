//! The process: configuration, wiring, administration, and the command line of orderly.
//!
//! - `admin`: what operators ask.
//! - [`start`]: builds a node, one crate after another.
//! - [`panics`]: a panic in any part ends it.
//! - [`cli`]: the commands.
//! - [`config`]: the configuration of a node.
//! - `bench`: load on any endpoint, measured and checked.
//! - `demo`: a whole cluster on this machine.
//! - `drill`: an audit of the promises while something is lost.
//! - `probe`: whether a node is ready.

mod admin;
mod bench;
pub mod cli;
pub mod config;
mod demo;
mod drill;
pub mod panics;
mod probe;
pub mod start;

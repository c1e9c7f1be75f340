//! Calls and sessions between two nodes: one stream for each pair, ordered and multiplexed.
//!
//! The *caller* is the node whose clients call; the *callee* leads shards.
//!
//! - [`wire`]: what is said, as bytes.
//! - [`frame`]: what is ready together travels together.
//! - [`links`]: the links of a node to others, dialled when they are needed.
//! - [`caller`], [`said`], [`pending`]: the calling end; a request as it is said; who waits.
//! - [`callee`], [`present`]: the called end; which node is linked by which stream.

mod callee;
mod caller;
mod frame;
mod links;
mod pending;
mod present;
mod said;
mod wire;

pub(super) use callee::Callee;
pub use links::Links;
pub(super) use links::{Called, Link};
pub(super) use wire::{CallId, Reply, Returned};

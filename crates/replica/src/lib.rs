//! The copies: Raft groups on this node, and the dispatch loops of their leaders.
//!
//! - [`replicas`]: all replicas of a node, founded once, started and stopped together.
//! - [`shard`]: a shard's leader at work, and the handle to it.
//! - [`control`]: the control group's leader at work, and the handle to it.
//! - `catalogue`: this node's copy of the catalogue, and what its changes mean for the shards.
//! - `groups`: the groups that have a replica here, and how other nodes reach them.
//! - `members`: who belongs to which group: what the catalogue wants becomes so.
//! - [`health`]: whether this node can serve.
//! - [`metrics`]: what is worth watching of it.
//! - `digests`: what its replicas have come to, to be compared with those of others.
//! - [`peer`]: the other nodes: how they are reached, and how their calls are answered.
//! - [`network`]: the seam below which two networks differ.
//! - `raft`: the one room that names openraft.
//! - [`clock`]: the one place that reads a clock.
//! - [`settings`]: what can be told.
//! - `aside`: work that waits for the disk.
//! - `session_numbers`: how the sessions of a node are numbered.
//! - `stopping`: how the tasks hear that the node shuts down.
//! - `work`: tasks that begin and end together.
//! - `unavailable`: the one answer of a group that does not answer.

mod aside;
mod catalogue;
pub mod clock;
pub mod control;
mod digests;
mod groups;
pub mod health;
mod members;
pub mod metrics;
pub mod network;
pub mod peer;
mod raft;
mod registry;
pub mod replicas;
mod session_numbers;
pub mod settings;
pub mod shard;
mod stopping;
mod unavailable;
mod work;

pub use clock::Clock;
pub use control::{ControlClient, LookError};
pub use digests::Digests;
pub use network::Network;
pub use peer::Peers;
pub use raft::{Stopped, Timing};
pub use registry::{Pins, RegistryClient};
pub use replicas::{Replicas, StartError};
pub use session_numbers::SessionNumbers;
pub use settings::Settings;
pub use shard::{ShardClient, Shards};
/// A group's state on this node.
pub use store::StateView;
pub use unavailable::Unavailable;

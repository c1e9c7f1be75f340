//! The control group: the catalogue, to be read and changed through any node.
//!
//! - `client`: the handle that the rest of the node calls.
//! - `membership`: how a node becomes a member.
//! - `remote`: calls between nodes.
//! - `request`: a call on its way to the leader.
//! - `leader`: the leader at work: it proposes changes, and answers them when all nodes have them.
//! - `planning`: where groups should live, proposed again and again.
//! - `reports`: what the leader hears from the nodes.
//! - `asker`: who wants a command in the log.
//! - `formats`: which format levels the nodes know.
//! - `grants`: which nodes have a catalogue lease.

mod asker;
mod client;
mod formats;
mod grants;
mod leader;
mod membership;
mod planning;
mod remote;
mod reports;
mod request;

pub use client::{ControlClient, LookError};
pub(crate) use leader::leader;
pub use membership::{JoinError, Joined, join};
pub use reports::{LedGroup, Survey};
pub(crate) use request::{Granting, Led, Renewed};

//! The decisions: pure state machines, no IO.
//!
//! Nothing here reads a clock, a disk, a socket or a random number, and nothing is `async`: time
//! is an argument, the leader stamps a command once, and `apply` takes time from the command.
//! So a whole cluster can be run again from one seed, and every replica decides alike.
//!
//! - [`kv`]: what a state machine reads ([`kv::View`]) and writes ([`kv::Overlay`]).
//! - [`table`]: one file per kind of row.
//! - [`command`]: what stands in the log.
//! - [`control`]: topics and subscriptions, as the control group keeps them.
//! - [`message_wire`]: the fields of an encoded message that matter here.
//! - [`registry`]: which shard owns which key, as a registry group keeps it.
//! - [`shard`]: messages and what was acknowledged of them, as a shard keeps them.
//! - [`dispatch`]: which message goes to which session, as a shard's leader decides it.
//! - [`route`]: which shard takes a message that no pin binds yet.
//! - [`filter`]: which messages a subscription wants.

pub mod command;
pub mod control;
pub mod dispatch;
pub mod filter;
pub mod kv;
pub mod message_wire;
pub mod registry;
pub mod route;
pub mod shard;
pub mod subscription;
pub mod table;

use model::FormatLevel;
use thiserror::Error;

/// The state of a replica can't be read, or is not what this program wrote.
///
/// A fault stops the replica: to go on would be to diverge.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Fault {
    /// The disk refused a read.
    #[error("state can't be read: {0}")]
    Unreadable(String),
    /// A row does not decode.
    #[error("row {key} of table {table} is corrupt", key = hex(.key))]
    CorruptRow {
        /// The table.
        table: u8,
        /// The whole key.
        key: Vec<u8>,
    },
    /// The cluster is at a format level that this program does not know.
    #[error("the cluster is at format level {0}, and this program knows {known}: install a newer one", known = FormatLevel::KNOWN)]
    UnknownFormat(FormatLevel),
    /// A row refers to one that is not there.
    #[error("{0} is missing")]
    Missing(String),
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

//! The one room that names openraft.
//!
//! openraft is young and pinned exactly, so nothing outside of here sees one of its types: the
//! rest of the crate proposes and reads through [`Core`]. A bump of its version is a change of
//! these files only, and of what their comments claim.
//!
//! - [`core`]: one group's Raft, as the rest of the crate sees it.
//! - [`config`]: its timing.
//! - [`entry`]: log entries, as the store keeps them.
//! - [`log`]: the log on disk.
//! - [`state`]: applying, all of one batch in one write.
//! - [`effects`]: what applied changes of the catalogue mean, on its way to the shards.
//! - [`checkpoint`]: what lets the log be cut, and the state on its way between nodes.
//! - [`members`]: who belongs to a group, and who shall lead it.
//! - [`rest`]: a leader's work rests before its leadership is handed over.
//! - [`network`]: the way to other nodes.
//! - [`answer`]: how the outcome of a proposal comes back.

mod answer;
mod checkpoint;
mod config;
#[cfg(test)]
mod conformance;
mod core;
mod effects;
mod entry;
mod log;
mod members;
mod network;
mod rest;
mod state;

pub use self::core::Stopped;
pub(crate) use self::core::{Committed, Core, Leadership, Leading, NotCommitted, Pending};
pub(crate) use checkpoint::Exports;
pub use config::Timing;
pub(crate) use effects::{Effects, Notice};
pub(crate) use members::Members;
pub(crate) use network::{MESSAGE_BYTES_MAX, Unanswered};

use std::fmt;
use std::sync::Arc;

use engine::command::{Outcome, Proposal};
use model::{NodeId, Term};
use openraft::impls::leader_id_std::LeaderId;
use openraft::impls::{BoxedErrorSource, EmptyNode, InlineBatch};
use openraft::vote::leader_id_std::CommittedLeaderId;
use openraft::{EntryPayload, RaftTypeConfig};
use openraft_rt_tokio::TokioRuntime;

/// One set of types for every kind of group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Types;

impl RaftTypeConfig for Types {
    type D = Proposed;
    type R = Vec<Outcome>;
    type NodeId = NodeId;
    type Node = EmptyNode;
    type Term = u64;
    // A term has one leader at most, so a term is a fencing token and a log id is 16 bytes.
    type LeaderId = LeaderId<u64, NodeId>;
    type Vote = openraft::Vote<Self::LeaderId>;
    type Payload = EntryPayload<Proposed, NodeId, EmptyNode>;
    type Entry = openraft::Entry<CommittedLeaderId<u64>, Self::Payload>;
    type AsyncRuntime = TokioRuntime;
    type Responder<T: Send + 'static> = answer::Answer<T>;
    type Batch<T: Send + 'static> = InlineBatch<T>;
    type ErrorSource = BoxedErrorSource;
}

/// Where an entry stands: its term and index.
type LogId = openraft::alias::LogIdOf<Types>;
/// A log entry as openraft handles it.
type Entry = openraft::alias::EntryOf<Types>;
/// Who may vote, and since which entry.
type Membership = openraft::alias::StoredMembershipOf<Types>;
/// The highest term seen, and whom this node voted for in it.
type Vote = openraft::alias::VoteOf<Types>;

/// What stands in a log entry. Cheap to clone: replication, the log and apply share it.
#[derive(Clone, Debug)]
pub(crate) struct Proposed(Arc<Proposal>);

impl fmt::Display for Proposed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} commands", self.0.commands.len())
    }
}

/// The log id of the entry `index` of `term`.
fn log_id(term: Term, index: u64) -> LogId {
    LogId::new(term.0.into(), index)
}

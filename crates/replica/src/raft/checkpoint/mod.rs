//! What lets the log be cut: the mark up to which the state on disk has applied it. And how the
//! state gets to a replica for which the log was cut too early.
//!
//! The state has no log of its own: after a crash it is recovered by replay from the last flush.
//! So openraft may hear of a checkpoint, and cut the log behind it, only when its state was
//! flushed. Nothing is copied for it: the state itself is the checkpoint.
//!
//! - [`send`]: the state on its way to another node.
//! - [`receive`]: on its way in.
//! - [`hold`]: what must not be cut meanwhile.

mod hold;
mod receive;
mod send;

pub(super) use hold::Holds;
pub(crate) use send::Exports;

use std::io;

use openraft::alias::{SnapshotMetaOf, SnapshotOf};
use openraft::storage::RaftSnapshotBuilder;
use store::{Position, Sealed, Store};

use super::entry::position;
use super::{LogId, Membership, Types};

/// The rows of a checkpoint.
pub(super) enum Checkpoint {
    /// The state on this node. Who sends it reads it then, perhaps further than its mark.
    Here,
    /// What came from the leader, on this node's disk.
    Arrived(Sealed),
    /// Not needed: this node's state is as far already.
    Needless,
}

/// An applied entry, and who could vote there.
#[derive(Clone, Debug, Default)]
pub(super) struct Mark {
    pub(super) at: Option<LogId>,
    pub(super) membership: Membership,
}

impl Mark {
    /// Whether the state of this mark outlives a crash.
    pub(super) fn is_flushed(&self, flushed: Option<Position>) -> bool {
        self.at.as_ref().map(position) <= flushed
    }

    /// The checkpoint of this mark.
    pub(super) fn checkpoint(self) -> SnapshotOf<Types, Checkpoint> {
        SnapshotOf::<Types, Checkpoint> {
            meta: SnapshotMetaOf::<Types> {
                last_log_id: self.at,
                last_membership: self.membership,
            },
            snapshot: Checkpoint::Here,
        }
    }
}

/// Makes the checkpoint of one mark.
pub(super) struct Builder {
    pub(super) mark: Mark,
    /// Where the mark is not flushed yet.
    pub(super) flush: Option<Store>,
}

impl RaftSnapshotBuilder<Types> for Builder {
    type SnapshotData = Checkpoint;

    async fn build_snapshot(&mut self) -> io::Result<SnapshotOf<Types, Checkpoint>> {
        if let Some(store) = self.flush.take() {
            store.flush_state().map_err(io::Error::other)?;
        }
        Ok(self.mark.clone().checkpoint())
    }
}

//! A checkpoint on its way in. Its rows get a generation of their own, beside the state that is
//! still valid; so whatever happens before the end, the group is as it was before.

use std::sync::Arc;

use engine::Fault;
use engine::table::run::PayloadAt;
use model::GroupId;
use thiserror::Error;

pub use super::chunk::BadChunk;
use super::chunk::unpack;
use super::record::Record;
use crate::backend::batch::{Batch, Durability};
use crate::core::Core;
use crate::entry::{Applied, Position};
use crate::fault::WriteFault;
use crate::group::{Group, applied_parts};
use crate::key::{self, Column};
use crate::level::DiskLevel;
use crate::store::Store;
use crate::writer::Ticket;

/// A checkpoint that is coming in. When it goes without [`Sealed::switch`], it leaves nothing that
/// counts.
pub struct Install {
    pub(super) store: Store,
    pub(super) group: Arc<Group>,
    /// The generation of its rows.
    pub(super) generation: u32,
    /// How far it goes.
    pub(super) applied: Applied,
    /// The number of the next chunk.
    next: u32,
    records: u64,
    /// Whether the last record has come.
    ended: bool,
    /// When the payloads that came are written.
    written: Option<Ticket>,
    pub(super) switched: bool,
}

/// A whole checkpoint, on this node's disk.
pub struct Sealed(pub(super) Install);

/// Why a checkpoint is not installed: *refused*, the group is as it was before. After a fault of the
/// disk, *unknown*: the next start finds the old state or the new one, whole.
#[derive(Debug, Error)]
pub enum InstallError {
    /// Another checkpoint of the group is coming in.
    #[error("another checkpoint of {0} is coming in")]
    Busy(GroupId),
    /// The group's state is as far already.
    #[error("state of {group} has applied {applied}, and the checkpoint ends at {checkpoint}")]
    NotNewer {
        /// The group.
        group: GroupId,
        /// The last applied entry.
        applied: u64,
        /// The last entry in the checkpoint.
        checkpoint: u64,
    },
    /// What came is not what was sent.
    #[error("chunk {number} of the checkpoint of {group} is refused: {bad}")]
    BadChunk {
        /// The group.
        group: GroupId,
        /// Which chunk, from zero.
        number: u32,
        /// What is wrong with it.
        bad: BadChunk,
    },
    /// The disk is full. An install needs room for two states.
    #[error("disk has no room for a checkpoint of {0}")]
    DiskFull(GroupId),
    /// It ended before its last chunk.
    #[error("checkpoint of {0} ended early")]
    Incomplete(GroupId),
    /// What the disk says of the group can't be read.
    #[error(transparent)]
    Fault(#[from] Fault),
    /// The disk refused a write; the node must stop.
    #[error(transparent)]
    Write(#[from] WriteFault),
}

impl Install {
    /// Begins with the first chunk, which says how far the checkpoint goes.
    pub(crate) fn begin(store: Store, id: GroupId, first: &[u8]) -> Result<Self, InstallError> {
        let core = store.core();
        core.health.check()?;
        check_room(core, id)?;
        let bad = |bad| InstallError::BadChunk {
            group: id,
            number: 0,
            bad,
        };
        let mut records = unpack(first, id, 0).map_err(bad)?;
        let applied = match Record::read(&mut records) {
            Some(Record::Mark { at, note }) if records.is_empty() => Applied {
                at,
                note: note.to_vec().into(),
            },
            _ => return Err(bad(BadChunk::Malformed)),
        };
        let group = core.group(id)?;
        announce(&group, applied.at)?;
        Ok(Install {
            generation: group.generation() + 1,
            group,
            applied,
            next: 1,
            records: 1,
            ended: false,
            written: None,
            switched: false,
            store,
        })
    }

    /// How far the checkpoint goes.
    #[must_use]
    pub fn applied(&self) -> &Applied {
        &self.applied
    }

    /// Takes the next chunk in. Waits until the payloads of the chunk before are on the disk, so
    /// that a fast sender does not fill the queue that all groups share.
    ///
    /// # Errors
    /// [`InstallError`]; then the checkpoint is of no use any more.
    pub fn add(&mut self, chunk: &[u8]) -> Result<(), InstallError> {
        let (rows, payloads) = self.unpack(chunk).map_err(|bad| InstallError::BadChunk {
            group: self.group.id,
            number: self.next,
            bad,
        })?;
        self.next += 1;
        self.wait_for_payloads()?;
        let core = self.store.core();
        check_room(core, self.group.id)?;
        if payloads.bytes > 0 {
            self.written = Some(core.writer.submit(payloads, Box::new(|_| {})));
            core.writer.take_turn();
        }
        write_rows(core, rows)?;
        Ok(())
    }

    /// Brings everything that came to the disk, where it waits to be switched to.
    ///
    /// # Errors
    /// [`InstallError`]
    pub fn seal(mut self) -> Result<Sealed, InstallError> {
        if !self.ended {
            return Err(InstallError::Incomplete(self.group.id));
        }
        self.wait_for_payloads()?;
        let core = self.store.core();
        let (at, note) = applied_parts(&self.applied);
        let mut marks = Batch::default();
        let applied = key::applied(self.group.id, self.generation);
        marks.put(Column::State, applied, &[&at, note]);
        let install = key::install(self.group.id, self.generation);
        marks.put(Column::State, install, &[&at]);
        write_rows(core, marks)?;
        core.flush_state()?;
        Ok(Sealed(self))
    }

    /// What a chunk's records put in the state, and in the messages.
    fn unpack(&mut self, chunk: &[u8]) -> Result<(Batch, Batch), BadChunk> {
        let (mut rows, mut payloads) = (Batch::default(), Batch::default());
        let mut records = unpack(chunk, self.group.id, self.next)?;
        while !records.is_empty() {
            match Record::read(&mut records).filter(|_| !self.ended) {
                Some(Record::Row { key, value }) => {
                    let key = key::state(self.group.id, self.generation, key);
                    rows.put(Column::State, key, &[value]);
                }
                Some(Record::Payload { at, bytes }) if at.index <= self.applied.at.index => {
                    self.put_payload(&mut rows, &mut payloads, at, bytes);
                }
                Some(Record::End { records }) if records == self.records => self.ended = true,
                _ => return Err(BadChunk::Malformed),
            }
            self.records += 1;
        }
        Ok((rows, payloads))
    }

    /// A payload, and the row that says that the install brought it.
    fn put_payload(&self, rows: &mut Batch, payloads: &mut Batch, at: PayloadAt, bytes: &[u8]) {
        let message = key::message(self.group.id, at);
        payloads.put(Column::Message, message, &[bytes]);
        let installed = key::installed(self.group.id, self.generation, at);
        rows.put(Column::State, installed, &[]);
    }

    fn wait_for_payloads(&mut self) -> Result<(), WriteFault> {
        match self.written.take() {
            Some(ticket) => self.store.core().writer.wait_for(ticket),
            None => Ok(()),
        }
    }
}

impl Sealed {
    /// How far the checkpoint goes.
    #[must_use]
    pub fn applied(&self) -> &Applied {
        &self.0.applied
    }
}

impl Drop for Install {
    fn drop(&mut self) {
        if !self.switched {
            // On failure the store has stopped writing, and the next start discards the rows. The
            // payloads stay: the valid state may refer to the same ones. Those that no state
            // refers to go with the next install that is finished.
            let core = self.store.core();
            let _ = core.discard_generation(self.group.id, self.generation);
        }
        self.group.log().installing = None;
    }
}

fn check_room(core: &Core, id: GroupId) -> Result<(), InstallError> {
    match core.disk_level() {
        DiskLevel::Full => Err(InstallError::DiskFull(id)),
        DiskLevel::Normal | DiskLevel::High => Ok(()),
    }
}

/// Checks that a checkpoint goes further than the group's state.
pub(super) fn check_newer(group: &Group, at: Position) -> Result<(), InstallError> {
    let applied = group.progress().applied.as_ref().map(|applied| applied.at);
    match applied.filter(|applied| applied.index >= at.index) {
        Some(applied) => Err(InstallError::NotNewer {
            group: group.id,
            applied: applied.index,
            checkpoint: at.index,
        }),
        None => Ok(()),
    }
}

/// Notes that a checkpoint comes in, if it may.
fn announce(group: &Group, at: Position) -> Result<(), InstallError> {
    check_newer(group, at)?;
    match &mut group.log().installing {
        Some(_) => Err(InstallError::Busy(group.id)),
        installing => {
            *installing = Some(at.index);
            Ok(())
        }
    }
}

fn write_rows(core: &Core, rows: Batch) -> Result<(), WriteFault> {
    core.health.check()?;
    let bytes = rows.bytes;
    core.backend
        .write(rows, Durability::Unlogged)
        .map_err(|error| core.health.fail(&error))?;
    core.flush_if_much(bytes)
}

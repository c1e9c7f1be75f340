//! The handle: everything that a node asks of its disk.

use std::ops::Range;

use bytes::Bytes;
use engine::Fault;
use engine::kv::Writes;
use model::GroupId;

use crate::entry::{Applied, LogBounds, LogEntry, Payloads, Position};
use crate::fault::{OpenError, WriteFault};
use crate::identity::Identity;
use crate::level::DiskLevel;
use crate::memory::{MemoryDisk, Pace};
use crate::settings::Settings;
use crate::state::StateView;

/// Told once, when a write is on the disk (fsync included) or is known to have failed. Called on
/// the writer's thread: it must not block.
pub type Done = Box<dyn FnOnce(Result<(), WriteFault>) + Send>;

/// The disk of a node. Clones are the same store; it is closed when the last one goes.
#[derive(Clone)]
pub struct Store {}

impl Store {
    /// Opens the database in a data folder.
    ///
    /// # Errors
    /// [`OpenError`], which says what to do. Nothing is created over existing data.
    pub fn open(settings: Settings) -> Result<Self, OpenError> {
        unimplemented!("{settings:?}")
    }

    /// Opens a store on a disk in memory. `settings.folder` only names it in errors.
    ///
    /// # Errors
    /// As [`Store::open`].
    pub fn memory(disk: &MemoryDisk, settings: Settings, pace: Pace) -> Result<Self, OpenError> {
        let _ = pace;
        unimplemented!("{disk:?} {settings:?}")
    }

    /// Whose disk it is.
    #[must_use]
    pub fn identity(&self) -> &Identity {
        unimplemented!()
    }

    /// Every group that has a row on this disk, in the order of their numbers.
    ///
    /// # Errors
    /// [`Fault`] when the disk can't be read.
    pub fn groups(&self) -> Result<Vec<GroupId>, Fault> {
        unimplemented!()
    }

    /// Appends entries behind the last one. They can be read when this returns; `done` is told
    /// when they are on the disk. Appends of one group become durable in order.
    ///
    /// # Panics
    /// When the first entry does not follow the last one of the log, or they have gaps.
    pub fn append(&self, group: GroupId, entries: Vec<LogEntry>, done: Done) {
        let _ = (group, entries, done);
        unimplemented!()
    }

    /// Writes the group's vote. [`Store::vote`] reads it when this returns.
    pub fn save_vote(&self, group: GroupId, vote: Bytes, done: Done) {
        let _ = (group, vote, done);
        unimplemented!()
    }

    /// Notes the last committed entry. It is written with whatever is synced next, so a crash may
    /// lose it: it only saves a restarted node from waiting for its leader.
    pub fn save_committed(&self, group: GroupId, committed: Option<Position>) {
        let _ = (group, committed);
        unimplemented!()
    }

    /// Removes all entries after `index` and their payloads.
    ///
    /// # Panics
    /// When an entry to remove was applied.
    pub fn truncate_after(&self, group: GroupId, index: u64, done: Done) {
        let _ = (group, index, done);
        unimplemented!()
    }

    /// Removes all entries up to and with `through`. Their payloads stay: the state refers to
    /// them. `through` may lie beyond the last entry: then the log continues behind it.
    ///
    /// # Panics
    /// When the state on disk has not applied `through`: see [`Store::flushed_applied`].
    pub fn purge(&self, group: GroupId, through: Position, done: Done) {
        let _ = (group, through, done);
        unimplemented!()
    }

    /// The entries of `range`, ended early when they weigh over `bytes_max` together; the first
    /// one comes whatever it weighs. Indexes outside of the log are left out.
    ///
    /// # Errors
    /// [`Fault`] when an entry or payload can't be read, is corrupt, or is missing.
    pub fn read_log(
        &self,
        group: GroupId,
        range: Range<u64>,
        bytes_max: usize,
        payloads: Payloads,
    ) -> Result<Vec<LogEntry>, Fault> {
        let _ = (group, range, bytes_max, payloads);
        unimplemented!()
    }

    /// The ends of the group's log, with everything that was appended.
    ///
    /// # Errors
    /// [`Fault`] when they can't be read.
    pub fn log_bounds(&self, group: GroupId) -> Result<LogBounds, Fault> {
        let _ = group;
        unimplemented!()
    }

    /// The last vote that was given to [`Store::save_vote`].
    ///
    /// # Errors
    /// [`Fault`] when it can't be read.
    pub fn vote(&self, group: GroupId) -> Result<Option<Bytes>, Fault> {
        let _ = group;
        unimplemented!()
    }

    /// The last committed entry that was noted, as far as it was written.
    ///
    /// # Errors
    /// [`Fault`] when it can't be read.
    pub fn committed(&self, group: GroupId) -> Result<Option<Position>, Fault> {
        let _ = group;
        unimplemented!()
    }

    /// The state of a group.
    #[must_use]
    pub fn view(&self, group: GroupId) -> StateView {
        StateView::new(self.clone(), group)
    }

    /// Writes what applying entries up to `applied` has changed, all or nothing. Readers see it
    /// when this returns. A crash may lose it, back to some earlier `applied` of this group: the
    /// log has it. Waits until the entries themselves are written, so that no state is ever ahead
    /// of its log.
    ///
    /// # Errors
    /// [`WriteFault`]; the node must stop.
    ///
    /// # Panics
    /// When `applied` does not lie behind the present one.
    pub fn write_state(
        &self,
        group: GroupId,
        applied: Applied,
        writes: Writes,
    ) -> Result<(), WriteFault> {
        let _ = (group, applied, writes);
        unimplemented!()
    }

    /// How far the group's state has come.
    ///
    /// # Errors
    /// [`Fault`] when it can't be read.
    pub fn applied(&self, group: GroupId) -> Result<Option<Applied>, Fault> {
        let _ = group;
        unimplemented!()
    }

    /// What the state still has applied after any crash, or `None` for nothing.
    ///
    /// # Errors
    /// [`Fault`] when it can't be read.
    pub fn flushed_applied(&self, group: GroupId) -> Result<Option<Position>, Fault> {
        let _ = group;
        unimplemented!()
    }

    /// Brings the state of all groups to the disk, then removes payloads that it no longer refers
    /// to. Happens by itself after [`crate::settings::Limits::flush_bytes`] or `flush_after`; with
    /// a disk in memory only after the former.
    ///
    /// # Errors
    /// [`WriteFault`]; the node must stop.
    pub fn flush_state(&self) -> Result<(), WriteFault> {
        unimplemented!()
    }

    /// How full the disk is, as of about a second ago.
    #[must_use]
    pub fn disk_level(&self) -> DiskLevel {
        unimplemented!()
    }

    /// Writes one batch of what waits, for a store with [`Pace::Driven`]. Others have nothing
    /// waiting. Answers whether there was anything.
    pub fn write_waiting(&self) -> bool {
        unimplemented!()
    }
}

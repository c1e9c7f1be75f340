//! The handle: everything that a node asks of its disk.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use engine::Fault;
use engine::kv::Writes;
use model::GroupId;

use crate::backend::memory::{MemoryBackend, MemoryDisk, Pace};
use crate::backend::{Backend, rocks};
use crate::checkpoint::install::{Install, InstallError};
use crate::checkpoint::{Digest, Refers};
use crate::core::Core;
use crate::entry::{Applied, LogBounds, LogEntry, Payloads, Position};
use crate::fault::{OpenError, WriteFault};
use crate::identity::Identity;
use crate::level::DiskLevel;
use crate::row::Rows;
use crate::settings::Settings;
use crate::start;
use crate::state::StateView;
use crate::sync_times::SyncTimes;
use crate::threads::Threads;
use crate::writer::{Done, Turn};

/// The disk of a node. Clones are the same store; it is closed when the last one goes, and the
/// last view with it. What was appended before is still written; state that was not flushed is
/// applied again at the next start.
#[derive(Clone)]
pub struct Store {
    core: Arc<Core>,
    /// Ends the store's threads when the last handle goes.
    _threads: Arc<Threads>,
}

impl Store {
    /// Opens the database in a data folder.
    ///
    /// # Errors
    /// [`OpenError`], which says what to do. Nothing is created over existing data.
    pub fn open(settings: Settings) -> Result<Self, OpenError> {
        let (backend, identity) = rocks::open(&settings)?;
        Store::with(backend, identity, &settings, Turn::Thread)
    }

    /// Opens a store on a disk in memory. `settings.folder` only names it in errors.
    ///
    /// # Errors
    /// As [`Store::open`].
    pub fn memory(disk: &MemoryDisk, settings: Settings, pace: Pace) -> Result<Self, OpenError> {
        let folder = &settings.folder;
        let backend = MemoryBackend::take(disk).ok_or_else(|| OpenError::InUse {
            folder: folder.clone(),
        })?;
        let backend: Arc<dyn Backend> = Arc::new(backend);
        let rows = Rows::new(backend.clone());
        let identity = start::identify(&*backend, &rows, folder, &settings.start, None)?;
        let turn = match pace {
            Pace::AtOnce => Turn::Caller,
            Pace::Driven(tell) => {
                let disk = disk.clone();
                Turn::Driver(Arc::new(move || tell(disk.sync_takes())))
            }
        };
        Store::with(backend, identity, &settings, turn)
    }

    fn with(
        backend: Arc<dyn Backend>,
        identity: Identity,
        settings: &Settings,
        turn: Turn,
    ) -> Result<Self, OpenError> {
        let threaded = matches!(turn, Turn::Thread);
        let Settings { limits, marks, .. } = settings;
        let core = Arc::new(Core::new(backend, identity, *limits, *marks, turn));
        core.look_at_space();
        let threads = match threaded {
            true => {
                Threads::start(&core).map_err(|error| start::unusable(&settings.folder, error))?
            }
            false => Threads::none(),
        };
        Ok(Store {
            core,
            _threads: Arc::new(threads),
        })
    }

    pub(crate) fn core(&self) -> &Core {
        &self.core
    }

    /// Whose disk it is.
    #[must_use]
    pub fn identity(&self) -> &Identity {
        &self.core.identity
    }

    /// Every group that has a row on this disk, in the order of their numbers.
    ///
    /// # Errors
    /// [`Fault`] when the disk can't be read.
    pub fn groups(&self) -> Result<Vec<GroupId>, Fault> {
        self.core.stored_groups()
    }

    /// Appends entries behind the last one. They can be read when this returns; `done` is told
    /// when they are on the disk. Appends of one group become durable in order.
    ///
    /// Waits when more than [`crate::settings::Limits::queue_bytes`] wait already.
    ///
    /// # Panics
    /// When the first entry does not follow the last one of the log, or they have gaps. A log
    /// without entry or purge mark begins anywhere.
    pub fn append(&self, group: GroupId, entries: Vec<LogEntry>, done: Done) {
        self.core.append(group, entries, done);
    }

    /// Writes the group's vote. [`Store::vote`] reads it when this returns.
    pub fn save_vote(&self, group: GroupId, vote: Bytes, done: Done) {
        self.core.save_vote(group, vote, done);
    }

    /// Notes the last committed entry. It is written with whatever is synced next, so a crash may
    /// lose it: it only saves a restarted node from waiting for its leader.
    pub fn save_committed(&self, group: GroupId, committed: Position) {
        self.core.save_committed(group, committed);
    }

    /// Removes all entries after `index` and their payloads.
    ///
    /// # Panics
    /// When an entry to remove was applied or purged.
    pub fn truncate_after(&self, group: GroupId, index: u64, done: Done) {
        self.core.truncate_after(group, index, done);
    }

    /// Removes all entries up to and with `through`. Their payloads stay until no row of the state
    /// refers to them either.
    ///
    /// # Panics
    /// When the state on disk has not applied `through`: see [`Store::flushed_applied`].
    pub fn purge(&self, group: GroupId, through: Position, done: Done) {
        self.core.purge(group, through, done);
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
        self.core.read_log(group, range, bytes_max, payloads)
    }

    /// The ends of the group's log, with everything that was appended.
    ///
    /// # Errors
    /// [`Fault`] when they can't be read.
    pub fn log_bounds(&self, group: GroupId) -> Result<LogBounds, Fault> {
        self.core.log_bounds(group)
    }

    /// The last vote that was given to [`Store::save_vote`].
    ///
    /// # Errors
    /// [`Fault`] when it can't be read.
    pub fn vote(&self, group: GroupId) -> Result<Option<Bytes>, Fault> {
        self.core.vote(group)
    }

    /// The last committed entry that was noted, or after a restart the last that was written.
    ///
    /// # Errors
    /// [`Fault`] when it can't be read.
    pub fn committed(&self, group: GroupId) -> Result<Option<Position>, Fault> {
        self.core.committed(group)
    }

    /// The state of a group.
    ///
    /// # Errors
    /// [`Fault`] when what the disk says of the group can't be read, or contradicts itself.
    pub fn view(&self, group: GroupId) -> Result<StateView, Fault> {
        StateView::new(self.clone(), group)
    }

    /// Writes what applying entries up to `applied` has changed, all or nothing. Readers see it
    /// when this returns. A crash may lose it, back to some earlier `applied` of this group: the
    /// log has it. Waits until the entries themselves are written, so that no state is ever ahead
    /// of its log. One caller at a time for each group.
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
        self.core.write_state(group, applied, writes)
    }

    /// How far the group's state has come.
    ///
    /// # Errors
    /// [`Fault`] when it can't be read.
    pub fn applied(&self, group: GroupId) -> Result<Option<Applied>, Fault> {
        self.core.applied(group)
    }

    /// What the state still has applied after any crash, or `None` for nothing.
    ///
    /// # Errors
    /// [`Fault`] when it can't be read.
    pub fn flushed_applied(&self, group: GroupId) -> Result<Option<Position>, Fault> {
        self.core.flushed_applied(group)
    }

    /// Brings the state of all groups to the disk, then removes payloads that it no longer refers
    /// to and whose entries are purged. Happens by itself after [`crate::settings::Limits::flush_bytes`] or `flush_after`; with
    /// a disk in memory only after the former.
    ///
    /// # Errors
    /// [`WriteFault`]; the node must stop.
    pub fn flush_state(&self) -> Result<(), WriteFault> {
        self.core.flush_state()
    }

    /// Packs a group's checkpoint, as it is at this moment, into chunks of about a mebibyte for
    /// [`Store::install`], until `send` says that it wants no more. Writes go on meanwhile. The
    /// first chunk only says how far the checkpoint goes, as does the answer: `None` when nothing
    /// was applied yet, and then nothing is sent.
    ///
    /// # Errors
    /// [`Fault`] when a row or payload can't be read, is corrupt, or is missing.
    pub fn export(
        &self,
        group: GroupId,
        refers: Refers,
        send: &mut dyn FnMut(Bytes) -> bool,
    ) -> Result<Option<Position>, Fault> {
        self.core.export(group, refers, send)
    }

    /// Begins to take a checkpoint in, from the first chunk that [`Store::export`] made elsewhere.
    /// One at a time for each group.
    ///
    /// # Errors
    /// [`InstallError`]
    pub fn install(&self, group: GroupId, first: &[u8]) -> Result<Install, InstallError> {
        Install::begin(self.clone(), group, first)
    }

    /// A hash over a group's state and the payloads that it refers to; `None` when nothing was
    /// applied yet. Reads all of it.
    ///
    /// # Errors
    /// [`Fault`] when a row or payload can't be read, is corrupt, or is missing.
    pub fn digest(&self, group: GroupId, refers: Refers) -> Result<Option<Digest>, Fault> {
        self.core.digest(group, refers)
    }

    /// How often a checkpoint has become the group's state on this disk.
    ///
    /// # Errors
    /// [`Fault`] when the disk can't be read.
    pub fn installs(&self, group: GroupId) -> Result<u32, Fault> {
        Ok(self.core.group(group)?.generation())
    }

    /// Whether calls may wait for the disk. One in memory makes nobody wait.
    #[must_use]
    pub fn waits(&self) -> bool {
        self.core.flush.is_kept()
    }

    /// How full the disk is, as of about a second ago.
    #[must_use]
    pub fn disk_level(&self) -> DiskLevel {
        self.core.disk_level()
    }

    /// Bytes that the disk can still take; `None` where that can't be found out.
    #[must_use]
    pub fn disk_free(&self) -> Option<u64> {
        self.core.backend.space().ok().map(|space| space.free)
    }

    /// How long the disk took to make writes durable, since the store was opened.
    #[must_use]
    pub fn sync_times(&self) -> SyncTimes {
        self.core.writer.clock.times()
    }

    /// Writes one batch of what waits, for a store with [`Pace::Driven`]. Others have nothing
    /// waiting. Answers whether there was anything.
    pub fn write_waiting(&self) -> bool {
        self.core.writer.write_waiting()
    }
}

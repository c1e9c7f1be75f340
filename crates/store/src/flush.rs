//! From memory to disk: the state, and after it the payloads that the state let go of.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use engine::table::garbage::{Garbage, GarbageKey};
use engine::table::row_key;
use engine::table::run::PayloadAt;

use crate::backend::batch::{Batch, Durability};
use crate::core::Core;
use crate::entry::Position;
use crate::fault::WriteFault;
use crate::group::Group;
use crate::key::{self, Column};
use crate::level::DiskLevel;

/// How often the keeper looks at the disk and at the age of what is unflushed.
const ROUND: Duration = Duration::from_secs(1);
/// Payloads that one batch removes: it must not hold up the writer.
const GARBAGE_BATCH: usize = 1_000;

/// A group, how far it is, and which payloads can go.
type Noted = (Arc<Group>, Option<Position>, Vec<PayloadAt>);

/// What waits to be flushed.
#[derive(Default)]
pub(crate) struct Flush {
    /// Held by whoever flushes.
    one_at_a_time: Mutex<()>,
    /// Bytes of state written since the last flush.
    bytes: AtomicUsize,
    /// Whether a thread flushes, instead of whoever writes too much.
    keeper: AtomicBool,
    closed: Mutex<bool>,
    /// Told when there is much to flush, and at the end.
    wake: Condvar,
}

impl Flush {
    /// Whether a thread flushes and looks at the disk's space.
    pub(crate) fn is_kept(&self) -> bool {
        self.keeper.load(Ordering::Acquire)
    }
}

impl Core {
    /// While this is held, nobody flushes.
    pub(crate) fn hold_flushes(&self) -> MutexGuard<'_, ()> {
        let lock = self.flush.one_at_a_time.lock();
        lock.expect("a panic in a flush ends the node")
    }

    pub(crate) fn flush_state(&self) -> Result<(), WriteFault> {
        let _alone = self.hold_flushes();
        self.health.check()?;
        let bytes = self.flush.bytes.load(Ordering::Acquire);
        // What is noted here was written before, so the flush takes it along.
        let groups = self.used_groups().into_iter();
        let noted: Vec<_> = groups.map(|group| self.note(group)).collect();
        self.backend
            .flush_state()
            .map_err(|error| self.health.fail(&error))?;
        self.flush.bytes.fetch_sub(bytes, Ordering::AcqRel);
        for (group, applied, garbage) in noted {
            group.progress().flushed = applied;
            for garbage in garbage.chunks(GARBAGE_BATCH) {
                self.remove_payloads(&group, garbage)?;
            }
        }
        Ok(())
    }

    /// Counts what was written, and sees to a flush when it is much.
    pub(crate) fn flush_if_much(&self, written: usize) -> Result<(), WriteFault> {
        let before = self.flush.bytes.fetch_add(written, Ordering::AcqRel);
        if before + written < self.limits.flush_bytes {
            return Ok(());
        }
        if self.flush.is_kept() {
            self.flush.wake.notify_all();
            return Ok(());
        }
        self.flush_state()
    }

    /// Counts what was appended, and sees to a look at the free space when it is much.
    pub(crate) fn look_if_much(&self, appended: usize) {
        if self.space.is_due_after(appended as u64) {
            self.flush.wake.notify_all();
        }
    }

    /// The loop of the thread that flushes by size and age and looks at the disk's free space.
    pub(crate) fn keep(&self) {
        let mut oldest = None;
        while self.next_round() {
            self.look_at_space();
            if !self.space.is_flushable() {
                continue;
            }
            if self.disk_level() > DiskLevel::Normal {
                // A failure is noted, and stops every later write.
                let _ = self.reclaim();
                oldest = None;
                continue;
            }
            let bytes = self.flush.bytes.load(Ordering::Acquire);
            if bytes == 0 {
                oldest = None;
                continue;
            }
            let age = oldest.get_or_insert_with(Instant::now).elapsed();
            let due = bytes >= self.limits.flush_bytes || age >= self.limits.flush_after;
            // A failure is noted, and stops every later write.
            if due && self.flush_state().is_ok() {
                oldest = None;
            }
        }
    }

    /// Makes room on a disk that has little: flushes what is written, lets go of what the flushed
    /// state has let go of, and has the disk do so at once.
    fn reclaim(&self) -> Result<(), WriteFault> {
        self.flush_state()?;
        let reclaimed = self.backend.reclaim();
        reclaimed.map_err(|error| self.health.fail(&error))
    }

    /// From now on a thread runs [`Core::keep`].
    pub(crate) fn has_keeper(&self) {
        self.flush.keeper.store(true, Ordering::Release);
    }

    /// Lets the thread end.
    pub(crate) fn close_keeper(&self) {
        *self.flush.closed.lock().expect("no holder panics") = true;
        self.flush.wake.notify_all();
    }

    /// Waits for the next round of the keeper; false at the end.
    fn next_round(&self) -> bool {
        let closed = self.flush.closed.lock().expect("no holder panics");
        let much = || {
            let bytes = self.flush.bytes.load(Ordering::Acquire);
            bytes >= self.limits.flush_bytes || self.space.is_due()
        };
        if !*closed && !much() {
            let waited = self.flush.wake.wait_timeout(closed, ROUND);
            return !*waited.expect("no holder panics").0;
        }
        !*closed && self.health.check().is_ok()
    }

    /// How far a group is, and which payloads can go: those that its state no longer refers to, as
    /// far as their entries are gone too. An entry that is still there may be asked for by a
    /// replica that lags, and then it must be whole.
    fn note(&self, group: Arc<Group>) -> Noted {
        let purged = self.purged_for_good(&group);
        let mut progress = group.progress();
        let applied = progress.applied.as_ref().map(|applied| applied.at);
        let gone = |at: &mut PayloadAt| {
            Some(at.index) <= purged || model::sabotage!("payload-goes-before-its-entry")
        };
        let garbage = progress.garbage.extract_if(.., gone).collect();
        drop(progress);
        (group, applied, garbage)
    }

    /// Removes payloads that the flushed state does not refer to, then the rows that say so. In
    /// this order: the next flush brings the removals to the disk before the end of those rows, so
    /// no payload is forgotten.
    fn remove_payloads(&self, group: &Group, garbage: &[PayloadAt]) -> Result<(), WriteFault> {
        let generation = group.generation();
        let mut messages = Batch::default();
        let mut rows = Batch::default();
        for at in garbage {
            self.payloads.remove(group.id, *at);
            messages.delete(Column::Message, key::message(group.id, *at));
            let row = row_key::<Garbage>(&GarbageKey(*at));
            let key = key::state(group.id, generation, &row);
            rows.delete(Column::State, key);
        }
        self.backend
            .write(messages, Durability::Logged)
            .and_then(|()| self.backend.write(rows, Durability::Unlogged))
            .map_err(|error| self.health.fail(&error))
    }
}

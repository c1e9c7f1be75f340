//! The logs of all groups: append, truncate, purge.

use std::sync::atomic::Ordering;
use std::sync::{Arc, MutexGuard};

use bytes::Bytes;
use engine::Fault;
use model::GroupId;

use crate::backend::batch::Batch;
use crate::core::Core;
use crate::entry::{LogBounds, LogEntry, Position};
use crate::entry_row::{self, EntryHeader};
use crate::fault::WriteFault;
use crate::group::Group;
use crate::group_log::Log;
use crate::key::{self, Column, Mark};
use crate::log_read::missing_entry;
use crate::writer::Done;

impl Core {
    pub(crate) fn append(&self, id: GroupId, entries: Vec<LogEntry>, done: Done) {
        let Some((group, done)) = self.writable(id, done) else {
            return;
        };
        self.writer.wait_for_room();
        let mut batch = Batch::default();
        for entry in &entries {
            entry_row::put(&mut batch, id, entry);
            for (at, payload) in EntryHeader::of(entry).payloads().zip(&entry.payloads) {
                self.payloads.insert(id, at, payload.clone());
            }
        }
        let weight: usize = entries.iter().map(LogEntry::weight).sum();
        let mut log = group.log();
        log.assert_continued_by(id, &entries);
        let ticket = self.writer.submit(batch, done);
        log.extend(entries, ticket);
        self.recent_bytes.fetch_add(weight, Ordering::Relaxed);
        self.make_room(&mut log);
        drop(log);
        self.writer.take_turn();
        self.look_if_much(weight);
    }

    pub(crate) fn save_vote(&self, id: GroupId, vote: Bytes, done: Done) {
        let Some((group, done)) = self.writable(id, done) else {
            return;
        };
        let mut batch = Batch::default();
        batch.put(Column::Meta, key::meta(id, Mark::Vote), &[&vote]);
        let mut log = group.log();
        log.vote = Some(vote);
        self.hand_over(log, batch, done);
    }

    pub(crate) fn save_committed(&self, id: GroupId, committed: Position) {
        if let Ok(group) = self.group(id) {
            group.log().committed = Some(committed);
            self.writer.note_committed(id, committed);
        }
    }

    pub(crate) fn truncate_after(&self, id: GroupId, index: u64, done: Done) {
        let Some((group, done)) = self.writable(id, done) else {
            return;
        };
        let applied = group.progress().applied.as_ref().map(|applied| applied.at);
        assert!(
            applied.is_none_or(|applied| applied.index <= index),
            "log of {id} cut after {index}, which is before what was applied: {applied:?}"
        );
        let mut log = group.log();
        match self.cut(id, &mut log, index) {
            Ok(batch) => self.hand_over(log, batch, done),
            Err(fault) => {
                drop(log);
                done(Err(WriteFault::Refused(fault.to_string())));
            }
        }
    }

    pub(crate) fn purge(&self, id: GroupId, through: Position, done: Done) {
        let Some((group, done)) = self.writable(id, done) else {
            return;
        };
        let flushed = group.progress().flushed;
        assert!(
            flushed.is_some_and(|flushed| through.index <= flushed.index)
                || model::sabotage!("purged-beyond-the-flushed"),
            "log of {id} purged through {through:?}, and the state on disk has only {flushed:?}"
        );
        let mut batch = Batch::default();
        let key = key::meta(id, Mark::Purged);
        batch.put(Column::Meta, key, &[&through.to_bytes()]);
        let mut log = group.log();
        self.forget_through(&mut log, through.index);
        if let Some(gone) = log.purge(through, self.limits.purge_bytes) {
            let (from, to) = (key::log(id, gone.start), key::log(id, gone.end));
            batch.delete_range(Column::Log, from, to);
        }
        log.purging = Some(self.writer.submit(batch, done));
        drop(log);
        self.writer.take_turn();
    }

    pub(crate) fn log_bounds(&self, id: GroupId) -> Result<LogBounds, Fault> {
        Ok(self.group(id)?.log().bounds)
    }

    pub(crate) fn vote(&self, id: GroupId) -> Result<Option<Bytes>, Fault> {
        Ok(self.group(id)?.log().vote.clone())
    }

    pub(crate) fn committed(&self, id: GroupId) -> Result<Option<Position>, Fault> {
        Ok(self.group(id)?.log().committed)
    }

    /// The last index whose entry is gone for good, after any crash too.
    pub(crate) fn purged_for_good(&self, group: &Group) -> Option<u64> {
        let log = group.log();
        let purged = log.bounds.purged?.index;
        let written = log
            .purging
            .is_none_or(|ticket| self.writer.is_written(ticket));
        written.then_some(purged)
    }

    /// Lets go of entries in memory that were applied. They are written.
    pub(crate) fn forget_applied(&self, group: &Group, index: u64) {
        self.forget_through(&mut group.log(), index);
    }

    /// The group, if writes to it are possible; else `done` is told why not.
    fn writable(&self, id: GroupId, done: Done) -> Option<(Arc<Group>, Done)> {
        let group = self.health.check().and_then(|()| {
            let group = self.group(id);
            group.map_err(|fault| WriteFault::Refused(fault.to_string()))
        });
        match group {
            Ok(group) => Some((group, done)),
            Err(fault) => {
                done(Err(fault));
                None
            }
        }
    }

    /// Queues a write in the order in which the log has changed.
    fn hand_over(&self, log: MutexGuard<'_, Log>, batch: Batch, done: Done) {
        self.writer.submit(batch, done);
        drop(log);
        self.writer.take_turn();
    }

    /// Takes the entries after `index` off the log in memory, and says what goes on disk.
    pub(crate) fn cut(&self, id: GroupId, log: &mut Log, index: u64) -> Result<Batch, Fault> {
        let purged = log.bounds.purged;
        assert!(
            purged.is_none_or(|purged| purged.index <= index),
            "log of {id} cut after {index}, which was purged: {purged:?}"
        );
        let mut batch = Batch::default();
        let start = (index + 1).max(log.first);
        let headers = (start..log.end())
            .map(|index| self.header(id, log, index))
            .collect::<Result<Vec<_>, _>>()?;
        if headers.is_empty() {
            return Ok(batch);
        }
        let last = match start > log.first {
            true => Some(self.header(id, log, start - 1)?.at),
            false => purged,
        };
        for header in headers {
            entry_row::delete(&mut batch, id, header);
            // The checkpoint that is being installed may have brought the same payloads. Those that
            // it does not refer to go with the next install that is finished.
            let installing = log
                .installing
                .is_some_and(|through| header.at.index <= through);
            if !installing {
                entry_row::delete_payloads(&mut batch, id, header);
            }
            for at in header.payloads() {
                self.payloads.remove(id, at);
            }
        }
        let weight = log.cut(start, last);
        self.recent_bytes.fetch_sub(weight, Ordering::Relaxed);
        Ok(batch)
    }

    /// The header of an entry of the log.
    pub(crate) fn header(&self, id: GroupId, log: &Log, index: u64) -> Result<EntryHeader, Fault> {
        if let Some(recent) = log.recent(index) {
            return Ok(EntryHeader::of(&recent.entry));
        }
        let key = key::log(id, index);
        let body = self.rows.get(Column::Log, &key)?;
        EntryHeader::read(&key, &body.ok_or_else(|| missing_entry(id, index))?)
    }

    /// Lets go of entries in memory that are written, while all groups together have too many.
    fn make_room(&self, log: &mut Log) {
        while self.recent_bytes.load(Ordering::Relaxed) > self.limits.log_cache_bytes {
            let Some(weight) = log.forget_first(|first| self.writer.is_written(first.ticket))
            else {
                return;
            };
            self.recent_bytes.fetch_sub(weight, Ordering::Relaxed);
        }
    }

    pub(crate) fn forget_through(&self, log: &mut Log, index: u64) {
        while let Some(weight) = log.forget_first(|first| first.entry.at.index <= index) {
            self.recent_bytes.fetch_sub(weight, Ordering::Relaxed);
        }
    }
}

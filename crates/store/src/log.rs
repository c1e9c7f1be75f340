//! The logs of all groups: append, truncate, purge, read.

use std::ops::Range;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use engine::Fault;
use engine::table::run::PayloadAt;
use model::GroupId;
use model::run::RunPayload;

use crate::backend::batch::Batch;
use crate::core::Core;
use crate::entry::{LogBounds, LogEntry, Payloads, Position};
use crate::entry_row::{self, EntryHeader};
use crate::fault::WriteFault;
use crate::group::{Group, Log, Recent};
use crate::key::{self, Column, Mark};
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
        let mut log = group.log();
        assert_follows(id, &log, &entries);
        let weight: usize = entries.iter().map(LogEntry::weight).sum();
        let heads: u64 = entries.iter().map(|entry| entry.head.len() as u64).sum();
        let ticket = self.writer.submit(batch, done);
        if let (Some(first), Some(last)) = (entries.first(), entries.last()) {
            if log.bounds.last.is_none() {
                log.first = first.at.index;
            }
            log.bounds.last = Some(last.at);
        }
        log.undeleted_bytes = log.undeleted_bytes.map(|bytes| bytes + heads);
        log.recent
            .extend(entries.into_iter().map(|entry| Recent { entry, ticket }));
        self.recent_bytes.fetch_add(weight, Ordering::Relaxed);
        self.make_room(&mut log);
        drop(log);
        self.writer.take_turn();
    }

    pub(crate) fn save_vote(&self, id: GroupId, vote: Bytes, done: Done) {
        let Some((group, done)) = self.writable(id, done) else {
            return;
        };
        let mut batch = Batch::default();
        batch.put(Column::Meta, key::meta(id, Mark::Vote), &[&vote]);
        let mut log = group.log();
        log.vote = Some(vote);
        self.writer.submit(batch, done);
        drop(log);
        self.writer.take_turn();
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
            Ok(batch) => {
                self.writer.submit(batch, done);
                drop(log);
                self.writer.take_turn();
            }
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
            flushed.is_some_and(|flushed| through.index <= flushed.index),
            "log of {id} purged through {through:?}, and the state on disk has only {flushed:?}"
        );
        let mut batch = Batch::default();
        let key = key::meta(id, Mark::Purged);
        batch.put(Column::Meta, key, &[&through.to_bytes()]);
        let mut log = group.log();
        assert!(
            log.bounds
                .purged
                .is_none_or(|purged| purged.index <= through.index),
            "the purge mark of {id} goes back to {through:?}"
        );
        self.forget_through(&mut log, through.index);
        log.bounds.purged = Some(through);
        log.bounds.last = log.bounds.last.max(Some(through));
        log.first = through.index + 1;
        if log
            .undeleted_bytes
            .is_none_or(|bytes| bytes >= self.limits.purge_bytes)
        {
            let from = log.deleted_through.map_or(0, |through| through + 1);
            let (from, to) = (key::log(id, from), key::log(id, through.index + 1));
            batch.delete_range(Column::Log, from, to);
            log.deleted_through = Some(through.index);
            log.undeleted_bytes = Some(0);
        }
        self.writer.submit(batch, done);
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

    pub(crate) fn read_log(
        &self,
        id: GroupId,
        range: Range<u64>,
        bytes_max: usize,
        payloads: Payloads,
    ) -> Result<Vec<LogEntry>, Fault> {
        let group = self.group(id)?;
        loop {
            let (stored, recent) = plan_read(&group.log(), range.clone());
            let mut room = Room {
                bytes: bytes_max,
                empty: true,
            };
            let mut entries = self.read_stored(id, stored.clone(), payloads, &mut room);
            if matches!(&entries, Err(Fault::Missing(_)))
                && plan_read(&group.log(), range.clone()).0 != stored
            {
                // Purged or cut meanwhile: the entries are not missing.
                continue;
            }
            if let Ok(entries) = &mut entries {
                let fits = recent
                    .into_iter()
                    .take_while(|entry| room.take(entry.weight()));
                entries.extend(fits.map(|entry| with(entry, payloads)));
            }
            return entries;
        }
    }

    /// The payload at a place, from memory if it is recent.
    pub(crate) fn payload(&self, id: GroupId, at: PayloadAt) -> Result<RunPayload, Fault> {
        if let Some(payload) = self.payloads.get(id, at) {
            return Ok(payload);
        }
        let key = key::message(id, at);
        let body = self.rows.get(Column::Message, &key)?.ok_or_else(|| {
            let PayloadAt {
                term,
                index,
                number,
            } = at;
            Fault::Missing(format!("payload {number} of {id} at {term}.{index}"))
        })?;
        let payload = RunPayload::from_stored(body)
            .map_err(|malformed| Fault::Unreadable(format!("{id} at {at:?}: {malformed}")))?;
        self.payloads.insert(id, at, payload.clone());
        Ok(payload)
    }

    /// Lets go of entries in memory that were applied. They are written.
    pub(crate) fn forget_applied(&self, group: &Group, index: u64) {
        self.forget_through(&mut group.log(), index);
    }

    /// The group, if writes to it are possible; else `done` is told why not.
    fn writable(&self, id: GroupId, done: Done) -> Option<(std::sync::Arc<Group>, Done)> {
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

    /// Takes the entries after `index` off the log in memory, and says what goes on disk.
    fn cut(&self, id: GroupId, log: &mut Log, index: u64) -> Result<Batch, Fault> {
        let purged = log.bounds.purged;
        assert!(
            purged.is_none_or(|purged| purged.index <= index),
            "log of {id} cut after {index}, which was purged: {purged:?}"
        );
        let mut batch = Batch::default();
        let cut = (index + 1).max(log.first)..log.end();
        if cut.is_empty() {
            return Ok(batch);
        }
        for index in cut.clone() {
            entry_row::delete(&mut batch, id, self.header(id, log, index)?);
        }
        let last = match cut.start > log.first {
            true => Some(self.header(id, log, cut.start - 1)?.at),
            false => purged,
        };
        for index in cut {
            for at in self.header(id, log, index)?.payloads() {
                self.payloads.remove(id, at);
            }
        }
        while log
            .recent
            .back()
            .is_some_and(|recent| recent.entry.at.index > index)
        {
            let weight = log.recent.pop_back().map_or(0, |cut| cut.entry.weight());
            self.recent_bytes.fetch_sub(weight, Ordering::Relaxed);
        }
        log.bounds.last = last;
        Ok(batch)
    }

    /// The header of an entry of the log.
    fn header(&self, id: GroupId, log: &Log, index: u64) -> Result<EntryHeader, Fault> {
        if let Some(recent) = log.recent(index) {
            return Ok(EntryHeader::of(&recent.entry));
        }
        let key = key::log(id, index);
        let body = self.rows.get(Column::Log, &key)?;
        EntryHeader::read(&key, &body.ok_or_else(|| missing_entry(id, index))?)
    }

    /// The entries of `range`, which are on disk, as far as there is room.
    fn read_stored(
        &self,
        id: GroupId,
        range: Range<u64>,
        payloads: Payloads,
        room: &mut Room,
    ) -> Result<Vec<LogEntry>, Fault> {
        let mut entries = Vec::new();
        if range.is_empty() {
            return Ok(entries);
        }
        let (from, to) = (key::log(id, range.start), key::log(id, range.end));
        let mut next = range.start;
        for found in self.rows.scan(Column::Log, &from, &to) {
            let (key, body) = found?;
            let header = EntryHeader::read(&key, &body)?;
            if header.at.index != next {
                break;
            }
            if !room.take(usize::try_from(header.weight).unwrap_or(usize::MAX)) {
                return Ok(entries);
            }
            let payloads = match payloads {
                Payloads::Joined => header.payloads().map(|at| self.payload(id, at)).collect(),
                Payloads::LeftOut => Ok(Vec::new()),
            };
            entries.push(LogEntry {
                at: header.at,
                head: entry_row::head(&body),
                payloads: payloads?,
            });
            next += 1;
        }
        match next == range.end {
            true => Ok(entries),
            false => Err(missing_entry(id, next)),
        }
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

    fn forget_through(&self, log: &mut Log, index: u64) {
        while let Some(weight) = log.forget_first(|first| first.entry.at.index <= index) {
            self.recent_bytes.fetch_sub(weight, Ordering::Relaxed);
        }
    }
}

/// What a read may still bring along.
struct Room {
    bytes: usize,
    empty: bool,
}

impl Room {
    /// Whether an entry still fits. The first does, and after one that does not none does.
    fn take(&mut self, weight: usize) -> bool {
        let fits = self.empty || weight <= self.bytes;
        self.empty = false;
        self.bytes = match fits {
            true => self.bytes.saturating_sub(weight),
            false => 0,
        };
        fits
    }
}

/// Which part of a range is on disk, and the rest from memory.
fn plan_read(log: &Log, range: Range<u64>) -> (Range<u64>, Vec<LogEntry>) {
    let start = range.start.max(log.first);
    let end = range.end.min(log.end());
    let border = log.recent_first().clamp(start.min(end), end);
    let recent = (border.max(start)..end)
        .filter_map(|index| log.recent(index))
        .map(|recent| recent.entry.clone())
        .collect();
    (start..border, recent)
}

fn with(entry: LogEntry, payloads: Payloads) -> LogEntry {
    match payloads {
        Payloads::Joined => entry,
        Payloads::LeftOut => LogEntry {
            payloads: Vec::new(),
            ..entry
        },
    }
}

fn assert_follows(id: GroupId, log: &Log, entries: &[LogEntry]) {
    let Some(first) = entries.first() else {
        return;
    };
    let start = match log.bounds.last {
        Some(last) => last.index + 1,
        None => first.at.index,
    };
    for (expected, entry) in (start..).zip(entries) {
        assert_eq!(
            entry.at.index, expected,
            "entries of {id} don't follow the last one"
        );
    }
}

fn missing_entry(id: GroupId, index: u64) -> Fault {
    Fault::Missing(format!("entry {index} of {id}"))
}

//! The log of one group, as the store keeps it in memory.

use std::collections::VecDeque;
use std::ops::Range;

use bytes::Bytes;
use engine::Fault;
use model::GroupId;

use crate::entry::{LogBounds, LogEntry, Position};
use crate::entry_row::EntryHeader;
use crate::group::malformed;
use crate::key::{self, Column, Mark};
use crate::row::Rows;
use crate::writer::Ticket;

/// The log, with everything that was appended.
pub(crate) struct Log {
    pub(crate) bounds: LogBounds,
    /// The first index of the log. It follows the purge mark, if there is one.
    pub(crate) first: u64,
    pub(crate) vote: Option<Bytes>,
    pub(crate) committed: Option<Position>,
    /// The newest entries, without a gap up to the last one. Those that are not written yet, and
    /// those that are not applied yet as far as there is room.
    pub(crate) recent: VecDeque<Recent>,
    /// Through which entry a checkpoint comes that is being installed, if one is.
    pub(crate) installing: Option<u64>,
    /// When the last purge is written, if there was one since the store was opened.
    pub(crate) purging: Option<Ticket>,
    /// Rows up to and with this index were deleted.
    pub(crate) deleted_through: Option<u64>,
    /// Bytes appended since rows were deleted last, or `None` when that is unknown.
    pub(crate) undeleted_bytes: Option<u64>,
}

/// An entry in memory.
pub(crate) struct Recent {
    pub(crate) entry: LogEntry,
    /// When it is written.
    pub(crate) ticket: Ticket,
}

impl Log {
    /// Reads what the disk says of a log.
    pub(crate) fn load(rows: &Rows, id: GroupId) -> Result<Self, Fault> {
        let purged = read_position(rows, id, Mark::Purged)?;
        let from = purged.map_or(0, |purged| purged.index + 1);
        let (from, end) = (key::log(id, from), key::log(id, u64::MAX));
        let first = rows.scan(Column::Log, &from, &end).next().transpose()?;
        let last = rows.floor(Column::Log, &from, &end)?;
        let first = match first {
            Some((key, _)) => {
                Some(key::log_index(&key).ok_or_else(|| malformed(Column::Log, &key))?)
            }
            None => None,
        };
        if let (Some(purged), Some(first)) = (purged, first)
            && first != purged.index + 1
        {
            let what = format!("log of {id} from {} to {first}", purged.index + 1);
            return Err(Fault::Missing(what));
        }
        let last = match last {
            Some((key, body)) => Some(EntryHeader::read(&key, &body)?.at),
            None => purged,
        };
        Ok(Log {
            bounds: LogBounds { purged, last },
            first: first.unwrap_or_else(|| last.map_or(0, |last| last.index + 1)),
            vote: rows.get(Column::Meta, &key::meta(id, Mark::Vote))?,
            committed: read_position(rows, id, Mark::Committed)?,
            recent: VecDeque::new(),
            installing: None,
            purging: None,
            deleted_through: None,
            undeleted_bytes: None,
        })
    }

    /// The index behind the last entry.
    pub(crate) fn end(&self) -> u64 {
        self.bounds
            .last
            .map_or(0, |last| last.index + 1)
            .max(self.first)
    }

    /// The first index that is in memory; from here to the end all are.
    pub(crate) fn recent_first(&self) -> u64 {
        self.recent
            .front()
            .map_or_else(|| self.end(), |first| first.entry.at.index)
    }

    /// The entry at `index`, if it is in memory.
    pub(crate) fn recent(&self, index: u64) -> Option<&Recent> {
        let at = index.checked_sub(self.recent_first())?;
        self.recent.get(usize::try_from(at).ok()?)
    }

    /// Lets go of the oldest entry in memory, if `may` says so. Answers what it weighed.
    pub(crate) fn forget_first(&mut self, may: impl FnOnce(&Recent) -> bool) -> Option<usize> {
        if !may(self.recent.front()?) {
            return None;
        }
        self.recent.pop_front().map(|recent| recent.entry.weight())
    }

    /// Panics unless entries follow the last one without a gap. A log that never had one begins
    /// anywhere.
    pub(crate) fn assert_continued_by(&self, id: GroupId, entries: &[LogEntry]) {
        let Some(first) = entries.first() else {
            return;
        };
        let start = match self.bounds.last {
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

    /// Adds entries that were handed to the writer.
    pub(crate) fn extend(&mut self, entries: Vec<LogEntry>, ticket: Ticket) {
        if let (Some(first), Some(last)) = (entries.first(), entries.last()) {
            if self.bounds.last.is_none() {
                self.first = first.at.index;
            }
            self.bounds.last = Some(last.at);
        }
        let heads: u64 = entries.iter().map(|entry| entry.head.len() as u64).sum();
        self.undeleted_bytes = self.undeleted_bytes.map(|bytes| bytes + heads);
        let recent = entries.into_iter().map(|entry| Recent { entry, ticket });
        self.recent.extend(recent);
    }

    /// Ends the log before `start`, at `last`. Answers what the entries in memory weighed.
    pub(crate) fn cut(&mut self, start: u64, last: Option<Position>) -> usize {
        let from = start.saturating_sub(self.recent_first()) as usize;
        let cut = self.recent.drain(from.min(self.recent.len())..);
        let weight = cut.map(|recent| recent.entry.weight()).sum();
        self.bounds.last = last;
        weight
    }

    /// Moves the beginning of the log behind `through`. Answers which rows go, if enough have
    /// gathered: each deletion of a range is a tombstone that reads have to pass.
    pub(crate) fn purge(&mut self, through: Position, bytes_min: u64) -> Option<Range<u64>> {
        let purged = self.bounds.purged.map(|purged| purged.index);
        assert!(
            purged <= Some(through.index),
            "purge mark goes back from {purged:?} to {through:?}"
        );
        if self.end() <= through.index {
            self.bounds.last = Some(through);
        }
        self.bounds.purged = Some(through);
        self.first = through.index + 1;
        if self.undeleted_bytes.is_some_and(|bytes| bytes < bytes_min) {
            return None;
        }
        self.undeleted_bytes = Some(0);
        let deleted = self.deleted_through.replace(through.index);
        Some(deleted.map_or(0, |deleted| deleted + 1)..through.index + 1)
    }

    /// Begins the log anew behind `at`, up to which a checkpoint came. Entries behind it stay if
    /// they continue it. Answers what the entries in memory that go have weighed.
    pub(crate) fn restart_behind(&mut self, at: Position, continued: bool) -> usize {
        let mut weight = 0;
        let goes = |first: &Recent| !continued || first.entry.at.index <= at.index;
        while let Some(gone) = self.forget_first(goes) {
            weight += gone;
        }
        if !continued {
            self.bounds.last = Some(at);
        }
        self.bounds.purged = Some(at);
        self.first = at.index + 1;
        self.deleted_through = Some(at.index);
        self.undeleted_bytes = None;
        weight
    }
}

fn read_position(rows: &Rows, id: GroupId, mark: Mark) -> Result<Option<Position>, Fault> {
    let key = key::meta(id, mark);
    let Some(body) = rows.get(Column::Meta, &key)? else {
        return Ok(None);
    };
    match <[u8; Position::BYTES]>::try_from(&body[..]) {
        Ok(bytes) => Ok(Some(Position::from_bytes(bytes))),
        Err(_) => Err(malformed(Column::Meta, &key)),
    }
}

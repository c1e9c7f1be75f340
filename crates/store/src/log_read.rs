//! Reading logs and payloads: what is in memory from there, the rest from the disk.

use std::ops::Range;

use engine::Fault;
use engine::table::run::PayloadAt;
use model::GroupId;
use model::run::RunPayload;

use crate::core::Core;
use crate::entry::{LogEntry, Payloads};
use crate::entry_row::{self, EntryHeader};
use crate::group_log::Log;
use crate::key::{self, Column};

impl Core {
    pub(crate) fn read_log(
        &self,
        id: GroupId,
        range: Range<u64>,
        bytes_max: usize,
        payloads: Payloads,
    ) -> Result<Vec<LogEntry>, Fault> {
        let group = self.group(id)?;
        loop {
            let (stored, recent) = plan_read(&group.log(), range.clone(), bytes_max);
            let mut room = Room::new(bytes_max);
            let mut entries = self.read_stored(id, stored.clone(), payloads, &mut room);
            if matches!(&entries, Err(Fault::Missing(_)))
                && plan_read(&group.log(), range.clone(), 0).0 != stored
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
        let body = self.rows.get(Column::Message, &key)?;
        let body = body.ok_or_else(|| missing_payload(id, at))?;
        let payload = RunPayload::from_stored(body)
            .map_err(|malformed| Fault::Unreadable(format!("{id} at {at:?}: {malformed}")))?;
        self.payloads.insert(id, at, payload.clone());
        Ok(payload)
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
}

/// What a read may still bring along.
struct Room {
    bytes: usize,
    empty: bool,
}

impl Room {
    fn new(bytes: usize) -> Self {
        Room { bytes, empty: true }
    }

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

/// Which part of a range is on disk, and the rest from memory, as far as there can be room for it.
fn plan_read(log: &Log, range: Range<u64>, bytes_max: usize) -> (Range<u64>, Vec<LogEntry>) {
    let start = range.start.max(log.first);
    let end = range.end.min(log.end());
    let border = log.recent_first().clamp(start.min(end), end);
    let mut room = Room::new(bytes_max);
    let recent = (border.max(start)..end)
        .filter_map(|index| log.recent(index))
        .map(|recent| &recent.entry)
        .take_while(|entry| room.take(entry.weight()))
        .cloned()
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

pub(crate) fn missing_entry(id: GroupId, index: u64) -> Fault {
    Fault::Missing(format!("entry {index} of {id}"))
}

pub(crate) fn missing_payload(id: GroupId, at: PayloadAt) -> Fault {
    let PayloadAt {
        term,
        index,
        number,
    } = at;
    Fault::Missing(format!("payload {number} of {id} at {term}.{index}"))
}

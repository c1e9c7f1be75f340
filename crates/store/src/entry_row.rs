//! The row of a log entry, and the rows of its payloads.

use bytes::Bytes;
use engine::Fault;
use engine::table::run::PayloadAt;
use model::GroupId;

use crate::backend::batch::Batch;
use crate::entry::{LogEntry, Position};
use crate::key::{self, Column};
use crate::row::place;

/// What stands before the head in an entry's row, little endian: position, the number of payloads
/// (u32), and what entry and payloads weigh together (u64).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EntryHeader {
    pub(crate) at: Position,
    pub(crate) payloads: u32,
    pub(crate) weight: u64,
}

const BYTES: usize = Position::BYTES + 4 + 8;

impl EntryHeader {
    pub(crate) fn of(entry: &LogEntry) -> Self {
        EntryHeader {
            at: entry.at,
            payloads: entry.payloads.len() as u32,
            weight: entry.weight() as u64,
        }
    }

    /// Reads the header in an entry's row, whose key must name the same index.
    pub(crate) fn read(key: &[u8], body: &Bytes) -> Result<Self, Fault> {
        let malformed = || Fault::Unreadable(place(Column::Log, key) + " is malformed");
        let (at, rest) = body.split_first_chunk().ok_or_else(malformed)?;
        let (payloads, rest) = rest.split_first_chunk().ok_or_else(malformed)?;
        let (weight, _) = rest.split_first_chunk().ok_or_else(malformed)?;
        let header = EntryHeader {
            at: Position::from_bytes(*at),
            payloads: u32::from_le_bytes(*payloads),
            weight: u64::from_le_bytes(*weight),
        };
        match key::log_index(key) == Some(header.at.index) {
            true => Ok(header),
            false => Err(malformed()),
        }
    }

    /// Where the entry's payloads are.
    pub(crate) fn payloads(&self) -> impl Iterator<Item = PayloadAt> + use<> {
        let Position { term, index } = self.at;
        (0..self.payloads).map(move |number| PayloadAt {
            term,
            index,
            number,
        })
    }
}

/// Writes an entry and its payloads.
pub(crate) fn put(batch: &mut Batch, group: GroupId, entry: &LogEntry) {
    let header = EntryHeader::of(entry);
    let parts = [
        &header.at.to_bytes()[..],
        &header.payloads.to_le_bytes(),
        &header.weight.to_le_bytes(),
        &entry.head,
    ];
    batch.put(Column::Log, key::log(group, entry.at.index), &parts);
    for (at, payload) in header.payloads().zip(&entry.payloads) {
        batch.put(
            Column::Message,
            key::message(group, at),
            &[payload.as_bytes()],
        );
    }
}

/// Removes an entry, but not its payloads.
pub(crate) fn delete(batch: &mut Batch, group: GroupId, header: EntryHeader) {
    batch.delete(Column::Log, key::log(group, header.at.index));
}

/// Removes the payloads of an entry.
pub(crate) fn delete_payloads(batch: &mut Batch, group: GroupId, header: EntryHeader) {
    for at in header.payloads() {
        batch.delete(Column::Message, key::message(group, at));
    }
}

/// The head in the body of an entry's row.
pub(crate) fn head(body: &Bytes) -> Bytes {
    body.slice(BYTES..)
}

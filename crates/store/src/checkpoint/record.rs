//! What a checkpoint consists of, in this order: one mark, rows each with the payload that it
//! refers to behind it, one end.

use engine::table::run::PayloadAt;

use crate::entry::Position;
use crate::key;

/// A part of a checkpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Record<'r> {
    /// How far the state has come, and the note that was written with it.
    Mark { at: Position, note: &'r [u8] },
    /// A row of the state.
    Row { key: &'r [u8], value: &'r [u8] },
    /// A payload that the row before refers to.
    Payload { at: PayloadAt, bytes: &'r [u8] },
    /// Nothing is missing: so many records came before.
    End { records: u64 },
}

/// The first byte of a record. They never change.
const MARK: u8 = 1;
const ROW: u8 = 2;
const PAYLOAD: u8 = 3;
const END: u8 = 4;

/// Bytes before key and value: the kind, and the length of each.
const HEADER: usize = 1 + 4 + 4;

impl<'r> Record<'r> {
    /// Appends the record's bytes.
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        match *self {
            Record::Mark { at, note } => write(out, MARK, &at.to_bytes(), note),
            Record::Row { key, value } => write(out, ROW, key, value),
            Record::Payload { at, bytes } => write(out, PAYLOAD, &key::payload_at(at), bytes),
            Record::End { records } => write(out, END, &records.to_le_bytes(), &[]),
        }
    }

    /// Takes what [`Record::write`] wrote off the front of `bytes`; `None` for anything else.
    pub(super) fn read(bytes: &mut &'r [u8]) -> Option<Self> {
        let (header, rest) = bytes.split_first_chunk::<HEADER>()?;
        let [kind, k0, k1, k2, k3, v0, v1, v2, v3] = *header;
        let key_bytes = u32::from_le_bytes([k0, k1, k2, k3]);
        let value_bytes = u32::from_le_bytes([v0, v1, v2, v3]);
        let (key, rest) = rest.split_at_checked(key_bytes as usize)?;
        let (value, rest) = rest.split_at_checked(value_bytes as usize)?;
        *bytes = rest;
        Some(match kind {
            MARK => Record::Mark {
                at: Position::from_bytes(key.try_into().ok()?),
                note: value,
            },
            ROW => Record::Row { key, value },
            PAYLOAD => Record::Payload {
                at: key::read_payload_at(key)?,
                bytes: value,
            },
            END => Record::End {
                records: u64::from_le_bytes(key.try_into().ok()?),
            },
            _ => return None,
        })
    }
}

fn write(out: &mut Vec<u8>, kind: u8, key: &[u8], value: &[u8]) {
    out.reserve(HEADER + key.len() + value.len());
    out.push(kind);
    out.extend_from_slice(&(key.len() as u32).to_le_bytes());
    out.extend_from_slice(&(value.len() as u32).to_le_bytes());
    out.extend_from_slice(key);
    out.extend_from_slice(value);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_read_back_one_after_another() {
        let records = [
            Record::Mark {
                at: Position { term: 2, index: 9 },
                note: b"note",
            },
            Record::Row {
                key: b"key",
                value: b"value",
            },
            Record::Payload {
                at: PayloadAt {
                    term: 1,
                    index: 7,
                    number: 3,
                },
                bytes: b"payload",
            },
            Record::End { records: 3 },
        ];
        let mut bytes = Vec::new();
        records.iter().for_each(|record| record.write(&mut bytes));

        let mut rest = &bytes[..];
        let read: Vec<_> = std::iter::from_fn(|| Record::read(&mut rest)).collect();
        assert_eq!(read, records);
        assert!(rest.is_empty());
    }

    #[test]
    fn a_record_cut_short_is_none() {
        let mut bytes = Vec::new();
        let row = Record::Row {
            key: b"key",
            value: b"value",
        };
        row.write(&mut bytes);
        for end in 0..bytes.len() {
            assert_eq!(Record::read(&mut &bytes[..end]), None, "{end} bytes");
        }
    }
}

//! Rows as they lie on disk: a format byte, a checksum, and then what was written.
//!
//! The checksum takes in column and key, so a row that turns up in another place is found out
//! too. A row that does not fit is a [`Fault`]: it is never read as absent.

use std::ops::Deref;
use std::sync::Arc;

use bytes::Bytes;
use engine::Fault;

use crate::backend::{Backend, DiskError, Reader};
use crate::key::Column;

/// The format of every row written by this program. A row of a later one is refused.
const FORMAT: u8 = 1;
/// Bytes before the body: format and checksum.
const HEADER: usize = 5;

/// A row on its way out of a scan: key and body.
pub(crate) type RawRow = (Vec<u8>, Bytes);

/// A row as it goes to disk, from the parts of its body.
pub(crate) fn seal(column: Column, key: &[u8], parts: &[&[u8]]) -> Bytes {
    let body: usize = parts.iter().map(|part| part.len()).sum();
    let mut row = Vec::with_capacity(HEADER + body);
    row.push(FORMAT);
    row.extend_from_slice(&[0; 4]);
    for part in parts {
        row.extend_from_slice(part);
    }
    let sum = checksum(column, key, FORMAT, &row[HEADER..]);
    row[1..HEADER].copy_from_slice(&sum.to_le_bytes());
    Bytes::from(row)
}

/// The body of a row that [`seal`] made.
fn open(column: Column, key: &[u8], row: &Bytes) -> Result<Bytes, Fault> {
    let corrupt = |what: &str| Fault::Unreadable(place(column, key) + what);
    let Some((&[format, s0, s1, s2, s3], body)) = row.split_first_chunk::<HEADER>() else {
        return Err(corrupt(" is cut short"));
    };
    let fits = checksum(column, key, format, body) == u32::from_le_bytes([s0, s1, s2, s3]);
    if !fits && !model::sabotage!("checksum-unread") {
        return Err(corrupt(" is corrupt: its checksum does not fit"));
    }
    if format != FORMAT {
        let found = format!(" has format {format}; this program knows {FORMAT}");
        return Err(corrupt(&found));
    }
    Ok(row.slice(HEADER..))
}

fn checksum(column: Column, key: &[u8], format: u8, body: &[u8]) -> u32 {
    let sum = crc32c::crc32c(&[column.number(), format]);
    crc32c::crc32c_append(crc32c::crc32c_append(sum, key), body)
}

/// How a fault names a row.
pub(crate) fn place(column: Column, key: &[u8]) -> String {
    let hex: String = key.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("row {hex} of column {}", column.name())
}

/// The rows of a disk, checked as they are read.
#[derive(Clone)]
pub(crate) struct Rows<R = Arc<dyn Backend>>(R);

impl<R> Rows<R>
where
    R: Deref<Target: Reader>,
{
    pub(crate) fn new(reader: R) -> Self {
        Rows(reader)
    }

    /// The body of a row, if there is one.
    pub(crate) fn get(&self, column: Column, key: &[u8]) -> Result<Option<Bytes>, Fault> {
        self.0
            .get(column, key)
            .map_err(unreadable)?
            .map(|row| open(column, key, &row))
            .transpose()
    }

    /// The rows of `[from, to)` in key order.
    pub(crate) fn scan<'a>(
        &'a self,
        column: Column,
        from: &[u8],
        to: &[u8],
    ) -> impl Iterator<Item = Result<RawRow, Fault>> + use<'a, R> {
        self.0.scan(column, from, to).map(move |found| {
            let (key, row) = found.map_err(unreadable)?;
            let body = open(column, &key, &row)?;
            Ok((key, body))
        })
    }

    /// The last row of `[from, at]`.
    pub(crate) fn floor(
        &self,
        column: Column,
        from: &[u8],
        at: &[u8],
    ) -> Result<Option<RawRow>, Fault> {
        match self.0.floor(column, from, at).map_err(unreadable)? {
            Some((key, row)) => {
                let body = open(column, &key, &row)?;
                Ok(Some((key, body)))
            }
            None => Ok(None),
        }
    }
}

fn unreadable(error: DiskError) -> Fault {
    Fault::Unreadable(error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sealed_row_opens_to_its_parts() {
        let row = seal(Column::Log, b"key", &[b"one", b"two"]);
        assert_eq!(open(Column::Log, b"key", &row).unwrap(), "onetwo");
    }

    #[test]
    fn any_flipped_bit_is_found() {
        let row = seal(Column::Meta, b"key", &[b"body"]);
        for bit in 0..row.len() * 8 {
            let mut flipped = row.to_vec();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert!(
                open(Column::Meta, b"key", &flipped.into()).is_err(),
                "bit {bit}"
            );
        }
    }

    #[test]
    fn a_row_does_not_pass_in_another_place() {
        let row = seal(Column::Meta, b"key", &[b"body"]);
        let fault = open(Column::Meta, b"kez", &row).unwrap_err();
        assert!(fault.to_string().contains("row 6b657a of column meta"));
        assert!(open(Column::Log, b"key", &row).is_err());
    }

    #[test]
    fn a_later_format_is_named() {
        let sum = checksum(Column::Meta, b"key", 9, b"body");
        let row = [&[9][..], &sum.to_le_bytes(), b"body"].concat();
        let fault = open(Column::Meta, b"key", &row.into()).unwrap_err();
        assert!(fault.to_string().contains("format 9"), "{fault}");
    }

    #[test]
    fn a_row_cut_short_is_no_row() {
        let row = seal(Column::Meta, b"key", &[b""]);
        assert!(open(Column::Meta, b"key", &row.slice(..4)).is_err());
    }
}

//! The rows of the state machines, one file per kind.
//!
//! A key is the table's number and then its fields in big endian, so that byte order is the order
//! of the fields. A value is a format version and then the row in postcard's encoding.
//! Checksums are the store's affair.
//!
//! Tables of a shard, in sort order: [`shard`], [`attachment`], [`run`], [`strand_run`],
//! [`strand`], [`lane`], [`holes`], [`delivery`], [`settled`], [`settled_at`], [`garbage`], [`topic`],
//! [`detached`], [`epoch_floor`], [`sealed`], [`staged`], [`arrived`].
//! Tables of the control group are numbered from 64, see [`crate::control`]; those of a registry
//! group from 128, see [`crate::registry`].

pub mod arrived;
pub mod attachment;
pub mod delivery;
pub mod detached;
pub mod epoch_floor;
pub mod garbage;
pub mod holes;
pub mod lane;
pub mod run;
pub mod sealed;
pub mod settled;
pub mod settled_at;
pub mod shard;
pub mod staged;
pub mod strand;
pub mod strand_run;
pub mod topic;

use bytes::Bytes;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::Fault;

/// The format of every value written by this program. A value of a later one is refused.
const FORMAT: u8 = 1;

/// One kind of row.
pub trait Row: Serialize + DeserializeOwned {
    /// The first byte of every key: no two tables share it, and it never changes.
    const TABLE: u8;
    /// What a row is found by.
    type Key: RowKey;
}

/// The key of a row without its table.
pub trait RowKey: Sized {
    /// Appends the key's bytes, in an encoding that sorts like the key.
    fn write(&self, out: &mut Vec<u8>);

    /// Reads what [`RowKey::write`] wrote; `None` for anything else.
    fn read(bytes: &[u8]) -> Option<Self>;
}

/// The whole key of a row: table, then key.
pub fn row_key<R: Row>(key: &R::Key) -> Vec<u8> {
    let mut out = Vec::with_capacity(48);
    out.push(R::TABLE);
    key.write(&mut out);
    out
}

/// The value of a row.
pub(crate) fn write_row<R: Row>(row: &R) -> Bytes {
    let out = postcard::to_extend(row, vec![FORMAT]);
    Bytes::from(out.expect("rows are plain data, which always encodes"))
}

/// Reads what [`write_row`] wrote.
pub(crate) fn read_row<R: Row>(key: &[u8], value: &[u8]) -> Result<R, Fault> {
    let row = match value.split_first() {
        Some((&FORMAT, rest)) => postcard::take_from_bytes(rest).ok(),
        _ => None,
    };
    match row {
        Some((row, [])) => Ok(row),
        _ => Err(Fault::CorruptRow {
            table: R::TABLE,
            key: key.to_vec(),
        }),
    }
}

/// A key made of numbers and hashes. Implements [`RowKey`] for a struct field by field.
macro_rules! fixed_key {
    ($key:ident { $($field:ident: $bytes:ident),* $(,)? }) => {
        impl $crate::table::RowKey for $key {
            fn write(&self, out: &mut Vec<u8>) {
                $($crate::table::fixed_key!(@write $bytes, self.$field, out);)*
            }

            fn read(bytes: &[u8]) -> Option<Self> {
                let mut rest = bytes;
                $(let $field = $crate::table::fixed_key!(@read $bytes, rest);)*
                rest.is_empty().then_some($key { $($field),* })
            }
        }
    };
    (@write number, $value:expr, $out:ident) => { $out.extend_from_slice(&$value.0.to_be_bytes()) };
    (@write hash, $value:expr, $out:ident) => { $out.extend_from_slice(&$value.0) };
    (@read number, $rest:ident) => {{
        let (first, after) = $rest.split_first_chunk::<8>()?;
        $rest = after;
        u64::from_be_bytes(*first).into()
    }};
    (@read hash, $rest:ident) => {{
        let (first, after) = $rest.split_first_chunk::<16>()?;
        $rest = after;
        model::KeyHash(*first)
    }};
}
pub(crate) use fixed_key;

#[cfg(test)]
mod tests;

//! The seam: a disk of ordered rows in four columns. RocksDB is one; the other is in memory,
//! because RocksDB can't be simulated. Everything above is the same code on both.
//!
//! - [`memory`]: loses what was not synced, and fails as it is told.
//! - [`rocks`]: the real one.

pub(crate) mod batch;
pub(crate) mod memory;
pub(crate) mod rocks;

use bytes::Bytes;
use thiserror::Error;

use crate::key::Column;
use crate::row::RawRow;
use batch::{Batch, Durability};

/// What the disk said when it refused.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{0}")]
pub(crate) struct DiskError(pub(crate) String);

/// The size of a disk, in bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DiskSpace {
    /// All of it.
    pub(crate) size: u64,
    /// What can still be written, besides what is in memory and must be written too.
    pub(crate) free: u64,
}

/// Rows on their way out of a scan, as they lie on disk.
pub(crate) type Scan<'a> = Box<dyn Iterator<Item = Result<RawRow, DiskError>> + 'a>;

/// Ordered rows to read.
pub(crate) trait Reader {
    /// The row of `key`, as it lies on disk.
    fn get(&self, column: Column, key: &[u8]) -> Result<Option<Bytes>, DiskError>;

    /// The rows of `[from, to)` in key order. Rows that are written meanwhile may be missed.
    fn scan<'a>(&'a self, column: Column, from: &[u8], to: &[u8]) -> Scan<'a>;

    /// The last row of `[from, at]`.
    fn floor(&self, column: Column, from: &[u8], at: &[u8]) -> Result<Option<RawRow>, DiskError>;
}

/// A disk of ordered rows.
///
/// What [`Backend::write`] wrote is read at once. What survives a crash of the process, and what a
/// loss of power, is said at [`Durability`].
pub(crate) trait Backend: Reader + Send + Sync {
    /// Lets someone read the rows of all columns as they are at this moment. Writes go on, and are
    /// not seen.
    fn freeze(&self, read: &mut dyn FnMut(&dyn Reader)) -> Result<(), DiskError>;

    /// Writes all of a batch or nothing.
    fn write(&self, batch: Batch, durability: Durability) -> Result<(), DiskError>;

    /// Brings everything in [`Column::State`] to the disk, and before it all that was written to
    /// the other columns until now.
    fn flush_state(&self) -> Result<(), DiskError>;

    /// Gives the room of deleted rows back to the disk, as far as it can be told without writing
    /// much: what only has to be let go of goes now, what has to be moved goes later.
    fn reclaim(&self) -> Result<(), DiskError>;

    /// How large the disk is, and how much of it can still be written.
    fn space(&self) -> Result<DiskSpace, DiskError>;

    /// Bytes that are set aside now; see [`Backend::set_reserve`].
    fn reserve(&self) -> u64;

    /// Sets bytes aside, or gives them up again.
    fn set_reserve(&self, bytes: u64) -> Result<(), DiskError>;
}

//! RocksDB.

mod folder;
mod open;
mod options;
mod room;
mod torn_log;

use std::sync::Arc;

use bytes::Bytes;
use rocksdb::{
    BoundColumnFamily, DB, DBRawIterator, ReadOptions, Snapshot, WriteBatch, WriteOptions,
};

use super::batch::{Batch, Change, Durability};
use super::{Backend, DiskError, DiskSpace, Reader, Scan};
use crate::key::Column;
use crate::row::RawRow;
use folder::Folder;
use room::Relocation;

pub(crate) use open::open;

/// A database of one node in its data folder.
pub(crate) struct RocksBackend {
    db: DB,
    folder: Folder,
    relocation: Relocation,
}

impl RocksBackend {
    fn column(&self, column: Column) -> Arc<BoundColumnFamily<'_>> {
        self.db
            .cf_handle(column.name())
            .expect("every column was opened with the database")
    }

    fn native(&self, batch: Batch) -> WriteBatch {
        let columns = Column::ALL.map(|column| self.column(column));
        let family = |column: Column| &columns[usize::from(column.number()) - 1];
        let mut native = WriteBatch::with_capacity_bytes(batch.bytes + 32 * batch.changes.len());
        for change in batch.changes {
            match change {
                Change::Put { column, key, row } => native.put_cf(family(column), key, row),
                Change::Delete { column, key } => native.delete_cf(family(column), key),
                Change::DeleteRange { column, from, to } => {
                    native.delete_range_cf(family(column), from, to);
                }
            }
        }
        native
    }
}

impl Reader for RocksBackend {
    fn get(&self, column: Column, key: &[u8]) -> Result<Option<Bytes>, DiskError> {
        get(self, ReadOptions::default(), column, key)
    }

    fn scan<'a>(&'a self, column: Column, from: &[u8], to: &[u8]) -> Scan<'a> {
        scan(self, ReadOptions::default(), column, from, to)
    }

    fn floor(&self, column: Column, from: &[u8], at: &[u8]) -> Result<Option<RawRow>, DiskError> {
        floor(self, ReadOptions::default(), column, from, at)
    }
}

/// The rows as they were at one moment.
struct Frozen<'a> {
    backend: &'a RocksBackend,
    snapshot: Snapshot<'a>,
}

impl Frozen<'_> {
    /// Everything is read once, so it does not push out of the cache what is read often.
    fn options(&self) -> ReadOptions {
        let mut options = ReadOptions::default();
        options.set_snapshot(&self.snapshot);
        options.fill_cache(false);
        options
    }
}

impl Reader for Frozen<'_> {
    fn get(&self, column: Column, key: &[u8]) -> Result<Option<Bytes>, DiskError> {
        get(self.backend, self.options(), column, key)
    }

    fn scan<'a>(&'a self, column: Column, from: &[u8], to: &[u8]) -> Scan<'a> {
        scan(self.backend, self.options(), column, from, to)
    }

    fn floor(&self, column: Column, from: &[u8], at: &[u8]) -> Result<Option<RawRow>, DiskError> {
        floor(self.backend, self.options(), column, from, at)
    }
}

fn get(
    backend: &RocksBackend,
    options: ReadOptions,
    column: Column,
    key: &[u8],
) -> Result<Option<Bytes>, DiskError> {
    let found = (backend.db).get_pinned_cf_opt(&backend.column(column), key, &options)?;
    Ok(found.map(|row| Bytes::copy_from_slice(&row)))
}

fn scan<'a>(
    backend: &'a RocksBackend,
    mut options: ReadOptions,
    column: Column,
    from: &[u8],
    to: &[u8],
) -> Scan<'a> {
    if from >= to {
        return Box::new(std::iter::empty());
    }
    options.set_iterate_lower_bound(from);
    options.set_iterate_upper_bound(to);
    Box::new(RocksScan {
        iterator: (backend.db).raw_iterator_cf_opt(&backend.column(column), options),
        position: ScanPosition::Before,
    })
}

fn floor(
    backend: &RocksBackend,
    mut options: ReadOptions,
    column: Column,
    from: &[u8],
    at: &[u8],
) -> Result<Option<RawRow>, DiskError> {
    if from > at {
        return Ok(None);
    }
    options.set_iterate_lower_bound(from);
    let mut iterator = (backend.db).raw_iterator_cf_opt(&backend.column(column), options);
    iterator.seek_for_prev(at);
    let found = row_at(&iterator);
    iterator.status()?;
    Ok(found)
}

impl Backend for RocksBackend {
    fn freeze(&self, read: &mut dyn FnMut(&dyn Reader)) -> Result<(), DiskError> {
        read(&Frozen {
            backend: self,
            snapshot: self.db.snapshot(),
        });
        Ok(())
    }

    fn write(&self, batch: Batch, durability: Durability) -> Result<(), DiskError> {
        let mut options = WriteOptions::default();
        // Rows of a batch come in order: the place of one is near that of the one before.
        options.set_memtable_insert_hint_per_batch(true);
        match durability {
            Durability::Synced => options.set_sync(true),
            Durability::Logged => {}
            Durability::Unlogged => options.disable_wal(true),
        }
        Ok(self.db.write_opt(self.native(batch), &options)?)
    }

    /// RocksDB syncs every log that it closed before it makes a flushed table valid, as long as
    /// there are several column families; so nothing flushed is ahead of what was logged before.
    fn flush_state(&self) -> Result<(), DiskError> {
        Ok(self.db.flush_cf(&self.column(Column::State))?)
    }

    fn reclaim(&self) -> Result<(), DiskError> {
        self.let_go()
    }

    fn space(&self) -> Result<DiskSpace, DiskError> {
        let mut space = self.folder.space()?;
        space.free = space.free.saturating_sub(self.owed()?);
        self.relocate_within(space.free)?;
        Ok(space)
    }

    fn reserve(&self) -> u64 {
        self.folder.reserve()
    }

    fn set_reserve(&self, bytes: u64) -> Result<(), DiskError> {
        Ok(self.folder.set_reserve(bytes)?)
    }
}

impl From<rocksdb::Error> for DiskError {
    fn from(error: rocksdb::Error) -> Self {
        DiskError(error.into_string())
    }
}

impl From<std::io::Error> for DiskError {
    fn from(error: std::io::Error) -> Self {
        DiskError(error.to_string())
    }
}

/// A walk over rows.
struct RocksScan<'a> {
    iterator: DBRawIterator<'a>,
    position: ScanPosition,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum ScanPosition {
    Before,
    Inside,
    Behind,
}

impl Iterator for RocksScan<'_> {
    type Item = Result<RawRow, DiskError>;

    fn next(&mut self) -> Option<Self::Item> {
        match self.position {
            ScanPosition::Before => self.iterator.seek_to_first(),
            ScanPosition::Inside => self.iterator.next(),
            ScanPosition::Behind => return None,
        }
        self.position = ScanPosition::Inside;
        if let Some(row) = row_at(&self.iterator) {
            return Some(Ok(row));
        }
        self.position = ScanPosition::Behind;
        let status = self.iterator.status();
        status.err().map(|error| Err(error.into()))
    }
}

fn row_at(iterator: &DBRawIterator<'_>) -> Option<RawRow> {
    let (key, row) = iterator.item()?;
    Some((key.to_vec(), Bytes::copy_from_slice(row)))
}

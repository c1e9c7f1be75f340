//! What a store can be told.

use std::path::PathBuf;
use std::time::Duration;

use crate::identity::Identity;

const MEBIBYTE: usize = 1024 * 1024;

/// How a store is opened.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The data folder.
    pub folder: PathBuf,
    /// What is expected in it.
    pub start: Start,
    /// When publishes, and then everything but deletes, are refused.
    pub marks: DiskMarks,
    /// How much is kept in memory, and for how long.
    pub limits: Limits,
}

/// What is expected in the data folder.
#[derive(Clone, Debug)]
pub enum Start {
    /// A node's data. Anything else is refused.
    Existing,
    /// Nothing yet: the folder becomes this node's.
    New(Identity),
}

/// Levels of free space, in bytes. On a small disk they count as 10 %, 3 % and 1 % of it.
#[derive(Clone, Copy, Debug)]
pub struct DiskMarks {
    /// With less free than this the level is [`crate::DiskLevel::High`].
    pub high_free: u64,
    /// With less free than this the level is [`crate::DiskLevel::Full`].
    pub full_free: u64,
    /// The size of the reserve file, which is given up when the disk is full so that what frees
    /// space can still be written, and made again once there is room.
    pub reserve: u64,
}

/// Bounds on memory and on replay.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Bytes of log entries that all groups together keep in memory once they are on disk.
    /// Entries that are not on disk yet are kept in any case.
    pub log_cache_bytes: usize,
    /// Bytes of recent payloads kept in memory for live delivery.
    pub payload_cache_bytes: usize,
    /// Bytes that RocksDB gathers in memory, over all columns, before it writes tables.
    pub memtable_bytes: usize,
    /// Bytes of tables that RocksDB keeps in memory.
    pub block_cache_bytes: usize,
    /// Bytes that wait for the writer. Beyond, an append waits for it.
    pub queue_bytes: usize,
    /// Bytes that the writer puts into one batch, unless one append alone has more.
    pub batch_bytes: usize,
    /// The state is flushed when this much of it has been written since the last flush.
    pub flush_bytes: usize,
    /// The state is flushed when its oldest unflushed write is this old.
    pub flush_after: Duration,
    /// A purge deletes entries only once this many bytes of them have gathered: each deletion of
    /// a range is a tombstone that reads have to pass.
    pub purge_bytes: u64,
}

impl Default for DiskMarks {
    fn default() -> Self {
        DiskMarks {
            high_free: 4 * 1024 * MEBIBYTE as u64,
            full_free: 1024 * MEBIBYTE as u64,
            reserve: 256 * MEBIBYTE as u64,
        }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            log_cache_bytes: 64 * MEBIBYTE,
            payload_cache_bytes: 256 * MEBIBYTE,
            memtable_bytes: 512 * MEBIBYTE,
            block_cache_bytes: 128 * MEBIBYTE,
            queue_bytes: 256 * MEBIBYTE,
            batch_bytes: 16 * MEBIBYTE,
            flush_bytes: 64 * MEBIBYTE,
            flush_after: Duration::from_secs(10),
            purge_bytes: 16 * MEBIBYTE as u64,
        }
    }
}

impl Settings {
    /// Settings with every default.
    #[must_use]
    pub fn new(folder: impl Into<PathBuf>, start: Start) -> Self {
        Settings {
            folder: folder.into(),
            start,
            marks: DiskMarks::default(),
            limits: Limits::default(),
        }
    }
}

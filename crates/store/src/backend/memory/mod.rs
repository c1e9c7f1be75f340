//! A disk in memory that loses what was not synced: what the simulator and most tests run on.
//!
//! It keeps apart what a process sees and what is safe, and so can end a process or cut the power
//! at any moment. It fails, slows down and fills up as its [`Faults`] say.

mod contents;

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use bytes::Bytes;

use super::batch::{Batch, Durability};
use super::{Backend, DiskError, DiskSpace, Reader, Scan};
use crate::key::Column;
use crate::row::RawRow;
use contents::{Columns, Contents};

/// Rows that a scan takes at first; it doubles up to [`CHUNK_MAX`], so that a look at the first
/// row is cheap and a long walk too.
const CHUNK_MIN: usize = 8;
/// Rows that a scan takes at once.
const CHUNK_MAX: usize = 1_024;

/// A disk in memory. Clones are the same disk; it outlives the stores that are opened on it.
#[derive(Clone, Default)]
pub struct MemoryDisk(Arc<Mutex<Contents>>);

/// What is wrong with a disk in memory.
#[derive(Clone, Debug, Default)]
pub struct Faults {
    /// How long a synced write takes. Only [`Pace::Driven`] waits for it.
    pub sync_takes: Duration,
    /// After this many more synced writes and flushes the next one fails, as does every later one.
    pub syncs_before_failure: Option<u64>,
    /// Whether reads fail.
    pub reads_fail: bool,
    /// Bytes of rows and reserve that the disk holds. A write beyond them fails.
    pub capacity: Option<u64>,
}

/// When a store in memory writes what waits for its writer.
#[derive(Clone)]
pub enum Pace {
    /// In the call that asks for it: `done` has been called when the call returns.
    AtOnce,
    /// When the owner calls [`crate::Store::write_waiting`]. The function is called once for each
    /// batch that begins to wait, with the time that the disk will take for it.
    Driven(Arc<dyn Fn(Duration) + Send + Sync>),
}

impl MemoryDisk {
    /// An empty disk.
    #[must_use]
    pub fn new() -> Self {
        MemoryDisk::default()
    }

    /// From now on the disk has these faults, and no others.
    pub fn set_faults(&self, faults: Faults) {
        self.contents().faults = faults;
    }

    /// The process ends at once: what it had not handed to the disk is lost, so the state goes
    /// back to its last flush. Stores that are open on the disk fail from now on.
    pub fn end_process(&self) {
        self.contents().end_process();
    }

    /// The power goes: of the writes that were not synced, the first few survive; how many, `seed`
    /// decides. Stores that are open on the disk fail from now on.
    pub fn lose_power(&self, seed: u64) {
        self.contents().lose_power(seed);
    }

    /// Flips one bit of one row that lies on the disk; `seed` decides which. Answers whether there
    /// was a row.
    pub fn flip_bit(&self, seed: u64) -> bool {
        self.contents().flip_bit(seed)
    }

    /// Bytes of rows and reserve on the disk now.
    #[must_use]
    pub fn used(&self) -> u64 {
        self.contents().used()
    }

    pub(crate) fn sync_takes(&self) -> Duration {
        self.contents().faults.sync_takes
    }

    fn contents(&self) -> MutexGuard<'_, Contents> {
        self.0
            .lock()
            .expect("no change of the contents panics half-way")
    }
}

impl fmt::Debug for MemoryDisk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryDisk").finish_non_exhaustive()
    }
}

/// A disk as one process sees it: useless once the process has ended.
pub(crate) struct MemoryBackend {
    disk: MemoryDisk,
    life: u64,
}

impl MemoryBackend {
    /// Takes the disk for one process, or `None` while another has it.
    pub(crate) fn take(disk: &MemoryDisk) -> Option<Self> {
        let life = disk.contents().take()?;
        Some(MemoryBackend {
            disk: disk.clone(),
            life,
        })
    }

    fn contents(&self) -> Result<MutexGuard<'_, Contents>, DiskError> {
        let contents = self.disk.contents();
        match contents.is_life(self.life) {
            true => Ok(contents),
            false => Err(DiskError("the process that had this disk has ended".into())),
        }
    }

    fn readable(&self) -> Result<MutexGuard<'_, Contents>, DiskError> {
        let contents = self.contents()?;
        match contents.faults.reads_fail {
            false => Ok(contents),
            true => Err(DiskError("input/output error (injected)".into())),
        }
    }
}

impl Drop for MemoryBackend {
    fn drop(&mut self) {
        self.disk.contents().leave(self.life);
    }
}

impl Reader for MemoryBackend {
    fn get(&self, column: Column, key: &[u8]) -> Result<Option<Bytes>, DiskError> {
        Ok(self.readable()?.seen().get(column, key))
    }

    fn scan<'a>(&'a self, column: Column, from: &[u8], to: &[u8]) -> Scan<'a> {
        chunked(from, to, move |from, to, count| {
            let all = self.readable()?;
            Ok(all.seen().rows(column, from, to, count))
        })
    }

    fn floor(&self, column: Column, from: &[u8], at: &[u8]) -> Result<Option<RawRow>, DiskError> {
        Ok(self.readable()?.seen().floor(column, from, at))
    }
}

/// The rows as they were at one moment. Reading them fails as the disk does.
struct Frozen<'a> {
    backend: &'a MemoryBackend,
    columns: Columns,
}

impl Frozen<'_> {
    fn readable(&self) -> Result<&Columns, DiskError> {
        self.backend.readable().map(|_| &self.columns)
    }
}

impl Reader for Frozen<'_> {
    fn get(&self, column: Column, key: &[u8]) -> Result<Option<Bytes>, DiskError> {
        Ok(self.readable()?.get(column, key))
    }

    fn scan<'a>(&'a self, column: Column, from: &[u8], to: &[u8]) -> Scan<'a> {
        chunked(from, to, move |from, to, count| {
            Ok(self.readable()?.rows(column, from, to, count))
        })
    }

    fn floor(&self, column: Column, from: &[u8], at: &[u8]) -> Result<Option<RawRow>, DiskError> {
        Ok(self.readable()?.floor(column, from, at))
    }
}

/// A scan of `[from, to)` that takes some rows at a time.
fn chunked<'a>(
    from: &[u8],
    to: &[u8],
    take: impl Fn(&[u8], &[u8], usize) -> Result<Vec<RawRow>, DiskError> + 'a,
) -> Scan<'a> {
    let mut from = from.to_vec();
    let to = to.to_vec();
    let mut size = CHUNK_MIN;
    let chunks = std::iter::from_fn(move || {
        let chunk = take(&from, &to, size);
        size = (size * 2).min(CHUNK_MAX);
        match &chunk {
            Ok(rows) => {
                from.clone_from(&rows.last()?.0);
                from.push(0);
            }
            // Nothing behind the error.
            Err(_) => from.clone_from(&to),
        }
        Some(chunk)
    });
    Box::new(chunks.flat_map(|chunk| match chunk {
        Ok(rows) => rows.into_iter().map(Ok).collect::<Vec<_>>(),
        Err(error) => vec![Err(error)],
    }))
}

impl Backend for MemoryBackend {
    fn freeze(&self, read: &mut dyn FnMut(&dyn Reader)) -> Result<(), DiskError> {
        let columns = self.readable()?.seen().clone();
        read(&Frozen {
            backend: self,
            columns,
        });
        Ok(())
    }

    fn write(&self, batch: Batch, durability: Durability) -> Result<(), DiskError> {
        self.contents()?.write(batch, durability)
    }

    fn flush_state(&self) -> Result<(), DiskError> {
        self.contents()?.flush_state()
    }

    /// Rows that are deleted take no room here.
    fn reclaim(&self) -> Result<(), DiskError> {
        Ok(())
    }

    fn space(&self) -> Result<DiskSpace, DiskError> {
        let contents = self.contents()?;
        Ok(DiskSpace {
            size: contents.faults.capacity.unwrap_or(u64::MAX),
            free: contents.free(),
        })
    }

    fn reserve(&self) -> u64 {
        self.disk.contents().reserve
    }

    fn set_reserve(&self, bytes: u64) -> Result<(), DiskError> {
        self.contents()?.reserve = bytes;
        Ok(())
    }
}

//! What lies on a disk in memory: what a process sees, and what is safe.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use bytes::Bytes;

use super::Faults;
use crate::backend::DiskError;
use crate::backend::batch::{Batch, Change, Durability};
use crate::key::Column;
use crate::row::RawRow;

type Rows = BTreeMap<Vec<u8>, Bytes>;

/// The columns, in the order of [`Column::ALL`]. A clone is cheap: the first change after it copies
/// the column that is changed.
#[derive(Clone, Default)]
pub(super) struct Columns([Arc<Rows>; 4]);

/// What lies on a disk in memory.
#[derive(Default)]
pub(super) struct Contents {
    pub(super) faults: Faults,
    /// Bytes set aside.
    pub(super) reserve: u64,
    /// Which process may use the disk, counted up when one ends.
    life: u64,
    taken: bool,
    /// What a process sees.
    seen: Columns,
    /// What survives everything.
    safe: Columns,
    /// Written to a column with a log, in order, since the last sync.
    unsynced: Vec<Batch>,
    /// Written to the state, in order, since the last flush.
    unflushed: Vec<Batch>,
    /// What the seen rows weigh.
    bytes: u64,
}

impl Columns {
    fn of(&self, column: Column) -> &Rows {
        &self.0[usize::from(column.number()) - 1]
    }

    fn of_mut(&mut self, column: Column) -> &mut Rows {
        Arc::make_mut(&mut self.0[usize::from(column.number()) - 1])
    }

    pub(super) fn get(&self, column: Column, key: &[u8]) -> Option<Bytes> {
        self.of(column).get(key).cloned()
    }

    /// At most `count` rows of `[from, to)`.
    pub(super) fn rows(&self, column: Column, from: &[u8], to: &[u8], count: usize) -> Vec<RawRow> {
        if from >= to {
            return Vec::new();
        }
        let bounds = (Bound::Included(from), Bound::Excluded(to));
        let rows = self.of(column).range::<[u8], _>(bounds);
        rows.take(count)
            .map(|(key, row)| (key.clone(), row.clone()))
            .collect()
    }

    /// The last row of `[from, at]`.
    pub(super) fn floor(&self, column: Column, from: &[u8], at: &[u8]) -> Option<RawRow> {
        if from > at {
            return None;
        }
        let bounds = (Bound::Included(from), Bound::Included(at));
        let last = self.of(column).range::<[u8], _>(bounds).next_back();
        last.map(|(key, row)| (key.clone(), row.clone()))
    }

    /// Makes the changes of a batch. Answers by how many bytes the rows have grown.
    fn apply(&mut self, batch: &Batch) -> i64 {
        batch
            .changes
            .iter()
            .map(|change| match change {
                Change::Put { column, key, row } => {
                    let old = self.of_mut(*column).insert(key.clone(), row.clone());
                    weight(key, row) - old.map_or(0, |old| weight(key, &old))
                }
                Change::Delete { column, key } => self.delete(*column, key),
                Change::DeleteRange { column, from, to } => {
                    let bounds = (Bound::Included(&from[..]), Bound::Excluded(&to[..]));
                    let range = self.of(*column).range::<[u8], _>(bounds);
                    let keys: Vec<Vec<u8>> = range.map(|(key, _)| key.clone()).collect();
                    keys.iter().map(|key| self.delete(*column, key)).sum()
                }
            })
            .sum()
    }

    fn delete(&mut self, column: Column, key: &[u8]) -> i64 {
        let old = self.of_mut(column).remove(key);
        old.map_or(0, |old| -weight(key, &old))
    }

    fn bytes(&self) -> u64 {
        let rows = self.0.iter().flat_map(|rows| rows.iter());
        rows.map(|(key, row)| weight(key, row).unsigned_abs()).sum()
    }
}

fn weight(key: &[u8], row: &Bytes) -> i64 {
    (key.len() + row.len()) as i64
}

impl Contents {
    /// Takes the disk for a process: the number of its life, or `None` while it is taken.
    pub(super) fn take(&mut self) -> Option<u64> {
        let free = !self.taken;
        self.taken = true;
        free.then_some(self.life)
    }

    /// The process leaves in peace. What it did not flush is lost all the same.
    pub(super) fn leave(&mut self, life: u64) {
        if self.is_life(life) {
            self.end_process();
        }
    }

    pub(super) fn is_life(&self, life: u64) -> bool {
        self.life == life
    }

    /// What a process sees.
    pub(super) fn seen(&self) -> &Columns {
        &self.seen
    }

    pub(super) fn write(&mut self, batch: Batch, durability: Durability) -> Result<(), DiskError> {
        if self.free() < batch.bytes as u64 {
            return Err(DiskError("no space left on device (injected)".into()));
        }
        let is_state = durability == Durability::Unlogged;
        for change in &batch.changes {
            assert_eq!(
                change.column() == Column::State,
                is_state,
                "state and logged columns never share a batch"
            );
        }
        let waiting = match is_state {
            true => &mut self.unflushed,
            false => &mut self.unsynced,
        };
        waiting.push(batch);
        if durability == Durability::Synced {
            // On failure the batch is on its way: a crash may keep it, but nobody sees it now.
            self.sync_or_fail()?;
        }
        let written = match is_state {
            true => self.unflushed.last(),
            false => self.unsynced.last(),
        };
        let grown = self.seen.apply(written.expect("pushed above"));
        self.bytes = self.bytes.saturating_add_signed(grown);
        if durability == Durability::Synced {
            self.make_logged_safe(self.unsynced.len());
        }
        Ok(())
    }

    pub(super) fn flush_state(&mut self) -> Result<(), DiskError> {
        self.sync_or_fail()?;
        self.make_logged_safe(self.unsynced.len());
        for batch in self.unflushed.drain(..) {
            self.safe.apply(&batch);
        }
        Ok(())
    }

    pub(super) fn end_process(&mut self) {
        self.unflushed.clear();
        self.seen = self.safe.clone();
        for batch in &self.unsynced {
            self.seen.apply(batch);
        }
        self.begin_next_life();
    }

    pub(super) fn lose_power(&mut self, seed: u64) {
        let survivors = seed % (self.unsynced.len() as u64 + 1);
        self.make_logged_safe(survivors as usize);
        self.unsynced.clear();
        self.unflushed.clear();
        self.seen = self.safe.clone();
        self.begin_next_life();
    }

    pub(super) fn flip_bit(&mut self, seed: u64) -> bool {
        let rows = || {
            Column::ALL
                .into_iter()
                .flat_map(|column| self.safe.of(column).iter().map(move |row| (column, row)))
        };
        let count = rows().count() as u64;
        if count == 0 {
            return false;
        }
        let (column, (key, row)) = rows()
            .nth((seed % count) as usize)
            .expect("the seed was brought below the count");
        let (key, mut row) = (key.clone(), row.to_vec());
        let bit = (seed / count) % (row.len() as u64 * 8);
        row[(bit / 8) as usize] ^= 1 << (bit % 8);
        for columns in [&mut self.safe, &mut self.seen] {
            columns
                .of_mut(column)
                .insert(key.clone(), Bytes::from(row.clone()));
        }
        true
    }

    pub(super) fn used(&self) -> u64 {
        self.bytes + self.reserve
    }

    pub(super) fn free(&self) -> u64 {
        let capacity = self.faults.capacity.unwrap_or(u64::MAX);
        capacity.saturating_sub(self.used())
    }

    fn begin_next_life(&mut self) {
        self.life += 1;
        self.taken = false;
        self.bytes = self.seen.bytes();
    }

    /// Makes the first `count` unsynced batches safe.
    fn make_logged_safe(&mut self, count: usize) {
        for batch in self.unsynced.drain(..count) {
            self.safe.apply(&batch);
        }
    }

    fn sync_or_fail(&mut self) -> Result<(), DiskError> {
        match &mut self.faults.syncs_before_failure {
            Some(0) => Err(DiskError("input/output error (injected)".into())),
            Some(left) => {
                *left -= 1;
                Ok(())
            }
            None => Ok(()),
        }
    }
}

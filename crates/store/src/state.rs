//! The state of a group, as [`engine`] reads and writes it.

use std::sync::Arc;

use bytes::Bytes;
use engine::Fault;
use engine::kv::{RawRow, View, Writes};
use engine::table::run::PayloadAt;
use model::GroupId;
use model::run::RunPayload;

use crate::backend::batch::{Batch, Durability};
use crate::core::Core;
use crate::entry::{Applied, Position};
use crate::fault::WriteFault;
use crate::group::{Group, applied_parts, garbage_key};
use crate::key::{self, Column, STATE_PREFIX};
use crate::store::Store;

/// The state of one group on this node: of what is written when it is asked, not frozen. It keeps
/// the store open.
#[derive(Clone)]
pub struct StateView {
    store: Store,
    group: Arc<Group>,
}

impl StateView {
    pub(crate) fn new(store: Store, id: GroupId) -> Result<Self, Fault> {
        let group = store.core().group(id)?;
        Ok(StateView { store, group })
    }

    /// Reads in the valid generation: once more, if another became valid meanwhile, because the
    /// rows of the old one go then.
    fn settled<T>(&self, read: impl Fn(u32) -> T) -> T {
        loop {
            let generation = self.group.generation();
            let found = read(generation);
            if self.group.generation() == generation {
                return found;
            }
        }
    }

    fn key(&self, generation: u32, row: &[u8]) -> Vec<u8> {
        key::state(self.group.id, generation, row)
    }
}

impl View for StateView {
    fn get(&self, key: &[u8]) -> Result<Option<Bytes>, Fault> {
        let rows = &self.store.core().rows;
        self.settled(|generation| rows.get(Column::State, &self.key(generation, key)))
    }

    fn scan<'a>(
        &'a self,
        from: &[u8],
        to: &[u8],
    ) -> Box<dyn Iterator<Item = Result<RawRow, Fault>> + 'a> {
        Box::new(Scan::new(self, from, to))
    }

    fn floor(&self, from: &[u8], at: &[u8]) -> Result<Option<RawRow>, Fault> {
        let rows = &self.store.core().rows;
        let found = self.settled(|generation| {
            let (from, at) = (self.key(generation, from), self.key(generation, at));
            rows.floor(Column::State, &from, &at)
        })?;
        Ok(found.map(without_prefix))
    }

    fn payload(&self, at: PayloadAt) -> Result<RunPayload, Fault> {
        self.store.core().payload(self.group.id, at)
    }
}

/// A walk over rows, which goes on in another generation when that becomes valid.
struct Scan<'a> {
    view: &'a StateView,
    generation: u32,
    rows: RawRows<'a>,
    /// Behind the last row that was found.
    next: Vec<u8>,
    to: Vec<u8>,
}

type RawRows<'a> = Box<dyn Iterator<Item = Result<RawRow, Fault>> + 'a>;

impl<'a> Scan<'a> {
    fn new(view: &'a StateView, from: &[u8], to: &[u8]) -> Self {
        let generation = view.group.generation();
        Scan {
            view,
            generation,
            rows: Scan::rows(view, generation, from, to),
            next: from.to_vec(),
            to: to.to_vec(),
        }
    }

    fn rows(view: &'a StateView, generation: u32, from: &[u8], to: &[u8]) -> RawRows<'a> {
        let (from, to) = (view.key(generation, from), view.key(generation, to));
        let rows = &view.store.core().rows;
        Box::new(rows.scan(Column::State, &from, &to))
    }
}

impl Iterator for Scan<'_> {
    type Item = Result<RawRow, Fault>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let found = self.rows.next();
            let generation = self.view.group.generation();
            if generation == self.generation {
                let found = found?.map(without_prefix);
                if let Ok((key, _)) = &found {
                    self.next.clone_from(key);
                    self.next.push(0);
                }
                return Some(found);
            }
            self.generation = generation;
            self.rows = Scan::rows(self.view, generation, &self.next, &self.to);
        }
    }
}

fn without_prefix((mut key, value): RawRow) -> RawRow {
    key.drain(..STATE_PREFIX);
    (key, value)
}

impl Core {
    pub(crate) fn write_state(
        &self,
        id: GroupId,
        applied: Applied,
        writes: Writes,
    ) -> Result<(), WriteFault> {
        self.health.check()?;
        let group = self
            .group(id)
            .map_err(|fault| WriteFault::Refused(fault.to_string()))?;
        let before = group.progress().applied.as_ref().map(|before| before.at);
        assert!(
            before.is_none_or(|before| before.index < applied.at.index),
            "state of {id} goes from {before:?} to {:?}",
            applied.at
        );
        self.wait_for_entry(&group, applied.at.index)?;
        let batch = state_batch(&group, &applied, &writes);
        let bytes = batch.bytes;
        self.backend
            .write(batch, Durability::Unlogged)
            .map_err(|error| self.health.fail(&error))?;
        self.forget_applied(&group, applied.at.index);
        let mut progress = group.progress();
        progress.applied = Some(applied);
        let garbage = writes.iter().filter(|(_, value)| value.is_some());
        progress
            .garbage
            .extend(garbage.filter_map(|(key, _)| garbage_key(key)));
        drop(progress);
        self.flush_if_much(bytes)
    }

    pub(crate) fn applied(&self, id: GroupId) -> Result<Option<Applied>, Fault> {
        Ok(self.group(id)?.progress().applied.clone())
    }

    pub(crate) fn flushed_applied(&self, id: GroupId) -> Result<Option<Position>, Fault> {
        Ok(self.group(id)?.progress().flushed)
    }

    /// Waits until an entry is written, and so comes to the disk before state that is written now.
    fn wait_for_entry(&self, group: &Group, index: u64) -> Result<(), WriteFault> {
        let ticket = group.log().recent(index).map(|recent| recent.ticket);
        match ticket {
            Some(ticket) => self.writer.wait_for(ticket),
            None => Ok(()),
        }
    }
}

/// The rows that changed, and the mark that says up to which entry, in one batch.
fn state_batch(group: &Group, applied: &Applied, writes: &Writes) -> Batch {
    let generation = group.generation();
    let mut batch = Batch::default();
    let (at, note) = applied_parts(applied);
    let key = key::applied(group.id, generation);
    batch.put(Column::State, key, &[&at, note]);
    for (row, value) in writes {
        let key = key::state(group.id, generation, row);
        match value {
            Some(value) => batch.put(Column::State, key, &[value]),
            None => batch.delete(Column::State, key),
        }
    }
    batch
}

//! A state in memory: small, whole and real. Tests, scripts and the simulation run on it.

use std::collections::BTreeMap;

use bytes::Bytes;
use model::run::RunPayload;

use super::{RawRow, View, Writes};
use crate::Fault;
use crate::table::garbage::{Garbage, GarbageKey};
use crate::table::run::PayloadAt;
use crate::table::{Row, RowKey};

/// Rows and payloads of one group. A clone is a checkpoint.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MemoryView {
    rows: BTreeMap<Vec<u8>, Bytes>,
    payloads: BTreeMap<PayloadAt, RunPayload>,
}

impl MemoryView {
    /// Writes all rows at once, and drops the payloads that became garbage.
    pub fn commit(&mut self, writes: Writes) {
        for (key, value) in writes {
            match value {
                Some(_) if key.first() == Some(&Garbage::TABLE) => self.drop_payload(&key[1..]),
                Some(value) => drop(self.rows.insert(key, value)),
                None => drop(self.rows.remove(&key)),
            }
        }
    }

    /// Stores the messages of a run, as a log does before their entry is applied.
    pub fn store_payload(&mut self, at: PayloadAt, payload: RunPayload) {
        self.payloads.insert(at, payload);
    }

    /// How many payloads are stored.
    #[must_use]
    pub fn payloads(&self) -> usize {
        self.payloads.len()
    }

    /// How many rows one table has.
    #[must_use]
    pub fn rows_of<R: Row>(&self) -> usize {
        let of_table = self.rows.range(vec![R::TABLE]..vec![R::TABLE + 1]);
        of_table.count()
    }

    /// All rows, in key order.
    pub fn rows(&self) -> impl Iterator<Item = (&[u8], &Bytes)> {
        self.rows.iter().map(|(key, value)| (&key[..], value))
    }

    fn drop_payload(&mut self, key: &[u8]) {
        let GarbageKey(at) = GarbageKey::read(key).expect("the key was written by this program");
        self.payloads.remove(&at);
    }
}

impl View for MemoryView {
    fn get(&self, key: &[u8]) -> Result<Option<Bytes>, Fault> {
        Ok(self.rows.get(key).cloned())
    }

    fn scan<'a>(
        &'a self,
        from: &[u8],
        to: &[u8],
    ) -> Box<dyn Iterator<Item = Result<RawRow, Fault>> + 'a> {
        if from >= to {
            return Box::new(std::iter::empty());
        }
        let rows = self.rows.range(from.to_vec()..to.to_vec());
        Box::new(rows.map(|(key, value)| Ok((key.clone(), value.clone()))))
    }

    fn floor(&self, from: &[u8], at: &[u8]) -> Result<Option<RawRow>, Fault> {
        if from > at {
            return Ok(None);
        }
        let rows = self.rows.range(from.to_vec()..=at.to_vec());
        Ok(rows.last().map(|(key, value)| (key.clone(), value.clone())))
    }

    fn payload(&self, at: PayloadAt) -> Result<RunPayload, Fault> {
        let payload = self.payloads.get(&at).cloned();
        payload.ok_or_else(|| Fault::Missing(format!("payload {at:?}")))
    }
}

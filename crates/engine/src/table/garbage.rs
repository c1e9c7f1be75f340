//! Payloads that no row refers to any more. The store removes them once this is on disk.

use serde::{Deserialize, Serialize};

use super::run::PayloadAt;
use super::{Row, RowKey};

/// Where the payload is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct GarbageKey(pub PayloadAt);

/// The key says all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Garbage;

impl Row for Garbage {
    const TABLE: u8 = 11;
    type Key = GarbageKey;
}

impl RowKey for GarbageKey {
    fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.0.term.to_be_bytes());
        out.extend_from_slice(&self.0.index.to_be_bytes());
        out.extend_from_slice(&self.0.number.to_be_bytes());
    }

    fn read(bytes: &[u8]) -> Option<Self> {
        let (term, rest) = bytes.split_first_chunk::<8>()?;
        let (index, rest) = rest.split_first_chunk::<8>()?;
        let number: [u8; 4] = rest.try_into().ok()?;
        Some(GarbageKey(PayloadAt {
            term: u64::from_be_bytes(*term),
            index: u64::from_be_bytes(*index),
            number: u32::from_be_bytes(number),
        }))
    }
}

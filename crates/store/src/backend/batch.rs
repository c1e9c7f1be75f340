//! Changes that happen together or not at all.

use bytes::Bytes;

use crate::key::Column;
use crate::row;

/// How long a batch lasts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Durability {
    /// Survives a loss of power once the write has returned, as does everything written to these
    /// columns before. Not for [`Column::State`].
    Synced,
    /// Survives the end of the process, not a loss of power. Not for [`Column::State`].
    Logged,
    /// Survives nothing until the next flush. Only for [`Column::State`]. A crash leaves these
    /// batches up to some point in time, and none after it.
    Unlogged,
}

/// One change of a row.
#[derive(Clone, Debug)]
pub(crate) enum Change {
    /// Writes a row.
    Put {
        column: Column,
        key: Vec<u8>,
        row: Bytes,
    },
    /// Removes a row, if it is there.
    Delete { column: Column, key: Vec<u8> },
    /// Removes the rows of `[from, to)`.
    DeleteRange {
        column: Column,
        from: Vec<u8>,
        to: Vec<u8>,
    },
}

/// Changes in the order in which they are made.
#[derive(Clone, Debug, Default)]
pub(crate) struct Batch {
    /// The changes.
    pub(crate) changes: Vec<Change>,
    /// What keys and rows weigh together, in bytes.
    pub(crate) bytes: usize,
}

impl Change {
    /// The column that is changed.
    pub(crate) fn column(&self) -> Column {
        match self {
            Change::Put { column, .. }
            | Change::Delete { column, .. }
            | Change::DeleteRange { column, .. } => *column,
        }
    }
}

impl Batch {
    /// Writes a row with a checksum, from the parts of its body.
    pub(crate) fn put(&mut self, column: Column, key: Vec<u8>, parts: &[&[u8]]) {
        let row = row::seal(column, &key, parts);
        self.bytes += key.len() + row.len();
        self.changes.push(Change::Put { column, key, row });
    }

    /// Removes a row, if it is there.
    pub(crate) fn delete(&mut self, column: Column, key: Vec<u8>) {
        self.bytes += key.len();
        self.changes.push(Change::Delete { column, key });
    }

    /// Removes the rows of `[from, to)`.
    pub(crate) fn delete_range(&mut self, column: Column, from: Vec<u8>, to: Vec<u8>) {
        self.bytes += from.len() + to.len();
        self.changes.push(Change::DeleteRange { column, from, to });
    }

    /// Adds the changes of another batch behind these.
    pub(crate) fn extend(&mut self, other: Batch) {
        self.bytes += other.bytes;
        self.changes.extend(other.changes);
    }
}

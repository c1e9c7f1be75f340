//! What a group keeps in its log, as the store sees it: positions, heads and payloads.

use bytes::Bytes;
use model::run::RunPayload;

/// A place in a group's log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position {
    /// The term of the leader that proposed the entry.
    pub term: u64,
    /// The entry's index. Indexes of a log count up by one.
    pub index: u64,
}

impl Position {
    /// Bytes of [`Position::to_bytes`].
    pub(crate) const BYTES: usize = 16;

    /// As it stands in rows: term, index, little endian.
    pub(crate) fn to_bytes(self) -> [u8; Self::BYTES] {
        (u128::from(self.index) << 64 | u128::from(self.term)).to_le_bytes()
    }

    /// Reads what [`Position::to_bytes`] wrote.
    pub(crate) fn from_bytes(bytes: [u8; Self::BYTES]) -> Self {
        let both = u128::from_le_bytes(bytes);
        Position {
            term: both as u64,
            index: (both >> 64) as u64,
        }
    }
}

/// One entry of a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogEntry {
    /// Where it stands.
    pub at: Position,
    /// The entry without its payloads. The store does not look inside.
    pub head: Bytes,
    /// The payloads, kept in rows of their own, numbered from zero in this order.
    pub payloads: Vec<RunPayload>,
}

impl LogEntry {
    /// What the entry weighs, in bytes.
    #[must_use]
    pub fn weight(&self) -> usize {
        let payloads = self.payloads.iter().map(|payload| payload.as_bytes().len());
        self.head.len() + payloads.sum::<usize>()
    }
}

/// Whether a read of the log brings the payloads along.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Payloads {
    /// Entries come whole, for replication.
    Joined,
    /// `payloads` of every entry is empty. Applying needs none.
    LeftOut,
}

/// The ends of a group's log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LogBounds {
    /// The last entry that was purged. The log begins behind it.
    pub purged: Option<Position>,
    /// The last entry, or [`LogBounds::purged`] when the log holds none.
    pub last: Option<Position>,
}

/// How far a group's state has come. Written in one batch with the state itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Applied {
    /// The last applied entry.
    pub at: Position,
    /// What the caller wants to find again with it. The store does not look inside.
    pub note: Bytes,
}

//! Where each row stands. Every key begins with its group's number, big endian, so that the rows
//! of one group lie together and in the order of their fields.
//!
//! | column | key | row |
//! |---|---|---|
//! | `log` | group, index | an entry without its payloads |
//! | `meta` | group, kind | a vote, a mark; group 0 is the node itself |
//! | `message` | group, term, index, number | one payload |
//! | `state` | group, install generation, 0 | how far the state has come |
//! | `state` | group, install generation, 1, row key | a row of a state machine |
//! | `state` | group, install generation, 2 | through which entry an install came that is not cleaned up |
//! | `state` | group, install generation, 2, term, index, number | a payload that it brought |

use engine::table::run::PayloadAt;
use model::GroupId;

/// A column family.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Column {
    /// Entries of all groups.
    Log,
    /// Votes, marks, and whose disk it is.
    Meta,
    /// Payloads.
    Message,
    /// All replicated state: the only column without a write-ahead log.
    State,
}

impl Column {
    /// Every column, in the order of their numbers.
    pub(crate) const ALL: [Column; 4] = [Column::Log, Column::Meta, Column::Message, Column::State];

    /// The name in RocksDB.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Column::Log => "log",
            Column::Meta => "meta",
            Column::Message => "message",
            Column::State => "state",
        }
    }

    /// The number that checksums take in, so that a row does not pass in another column.
    pub(crate) fn number(self) -> u8 {
        match self {
            Column::Log => 1,
            Column::Meta => 2,
            Column::Message => 3,
            Column::State => 4,
        }
    }
}

/// The kinds of rows that a group has in `meta`.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Mark {
    Vote,
    Committed,
    Purged,
    /// Which install of the group's state is the valid one. Absent means zero.
    Generation,
}

impl Mark {
    fn number(self) -> u8 {
        match self {
            Mark::Vote => 1,
            Mark::Committed => 2,
            Mark::Purged => 3,
            Mark::Generation => 4,
        }
    }
}

/// The row of `meta` that says whose disk this is, and its format. No group has number 0.
pub(crate) const IDENTITY: [u8; 5] = [0, 0, 0, 0, 1];

/// The key of an entry.
pub(crate) fn log(group: GroupId, index: u64) -> Vec<u8> {
    let mut key = Vec::with_capacity(12);
    key.extend_from_slice(&group.to_number().to_be_bytes());
    key.extend_from_slice(&index.to_be_bytes());
    key
}

/// The index in the key of an entry, or `None` for other bytes.
pub(crate) fn log_index(key: &[u8]) -> Option<u64> {
    let index = key.get(4..)?.try_into().ok()?;
    Some(u64::from_be_bytes(index))
}

/// The key of a mark.
pub(crate) fn meta(group: GroupId, mark: Mark) -> Vec<u8> {
    let mut key = group.to_number().to_be_bytes().to_vec();
    key.push(mark.number());
    key
}

/// Bytes of a [`PayloadAt`] in a key.
const PAYLOAD_AT: usize = 20;

/// The key of a payload.
pub(crate) fn message(group: GroupId, at: PayloadAt) -> Vec<u8> {
    let mut key = Vec::with_capacity(4 + PAYLOAD_AT);
    key.extend_from_slice(&group.to_number().to_be_bytes());
    key.extend_from_slice(&payload_at(at));
    key
}

/// The payload in the key of a row of `message`, or `None` for other bytes.
pub(crate) fn message_payload(key: &[u8]) -> Option<PayloadAt> {
    read_payload_at(key.get(4..)?)
}

/// Where a payload is, in bytes that sort alike.
pub(crate) fn payload_at(at: PayloadAt) -> [u8; PAYLOAD_AT] {
    let mut bytes = [0; PAYLOAD_AT];
    bytes[..8].copy_from_slice(&at.term.to_be_bytes());
    bytes[8..16].copy_from_slice(&at.index.to_be_bytes());
    bytes[16..].copy_from_slice(&at.number.to_be_bytes());
    bytes
}

/// Reads what [`payload_at`] wrote; `None` for other bytes.
pub(crate) fn read_payload_at(bytes: &[u8]) -> Option<PayloadAt> {
    let (term, rest) = bytes.split_first_chunk()?;
    let (index, rest) = rest.split_first_chunk()?;
    Some(PayloadAt {
        term: u64::from_be_bytes(*term),
        index: u64::from_be_bytes(*index),
        number: u32::from_be_bytes(rest.try_into().ok()?),
    })
}

/// The bytes before every row key of a group's state.
pub(crate) const STATE_PREFIX: usize = 9;

/// The key of a state row.
pub(crate) fn state(group: GroupId, generation: u32, row: &[u8]) -> Vec<u8> {
    let mut key = state_part(group, generation, 1, row.len());
    key.extend_from_slice(row);
    key
}

/// The key of the row that says how far a group's state has come. No scan over the rows of the
/// state meets it.
pub(crate) fn applied(group: GroupId, generation: u32) -> Vec<u8> {
    state_part(group, generation, 0, 0)
}

/// The key of the row that says through which entry an install came, while it is not cleaned up;
/// and the beginning of the keys of [`installed`].
pub(crate) fn install(group: GroupId, generation: u32) -> Vec<u8> {
    state_part(group, generation, 2, 0)
}

/// The key of the row that says that an install brought a payload.
pub(crate) fn installed(group: GroupId, generation: u32, at: PayloadAt) -> Vec<u8> {
    let mut key = state_part(group, generation, 2, PAYLOAD_AT);
    key.extend_from_slice(&payload_at(at));
    key
}

/// Where the rows of a group's state begin that belong to `generation` and later ones.
pub(crate) fn generation(group: GroupId, generation: u32) -> Vec<u8> {
    state_part(group, generation, 0, 0)
}

/// Behind every row that a group can have in any column.
pub(crate) fn group_end(group: GroupId) -> Vec<u8> {
    (group.to_number() + 1).to_be_bytes().to_vec()
}

fn state_part(group: GroupId, generation: u32, part: u8, room: usize) -> Vec<u8> {
    let mut key = Vec::with_capacity(STATE_PREFIX + room);
    key.extend_from_slice(&group.to_number().to_be_bytes());
    key.extend_from_slice(&generation.to_be_bytes());
    key.push(part);
    key
}

/// The group number that a key begins with; zero for one too short.
pub(crate) fn group_number(key: &[u8]) -> u32 {
    key.first_chunk::<4>()
        .map_or(0, |first| u32::from_be_bytes(*first))
}

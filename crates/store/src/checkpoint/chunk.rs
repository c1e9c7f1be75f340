//! Records packed into chunks, so that neither end holds a whole checkpoint in memory. A chunk says
//! which one it is and of which group, and has a checksum over all of it.

use bytes::Bytes;
use model::GroupId;
use thiserror::Error;

use super::record::Record;

/// What a chunk weighs, unless a single payload weighs more.
const CHUNK_BYTES: usize = 1024 * 1024;
/// The format of chunks and of the records in them. A chunk of a later one is refused.
const FORMAT: u8 = 1;
/// Bytes before the records: format, checksum, group, number.
const HEADER: usize = 1 + 4 + 4 + 4;

/// Packs the records of one checkpoint.
pub(super) struct Packer {
    group: GroupId,
    /// Which chunk is being filled, from zero.
    number: u32,
    /// Room for the header, then records.
    chunk: Vec<u8>,
}

impl Packer {
    pub(super) fn new(group: GroupId) -> Self {
        Packer {
            group,
            number: 0,
            chunk: vec![0; HEADER],
        }
    }

    /// Adds a record. Answers a chunk that became full.
    pub(super) fn add(&mut self, record: &Record<'_>) -> Option<Bytes> {
        record.write(&mut self.chunk);
        (self.chunk.len() >= CHUNK_BYTES).then(|| self.finish())
    }

    /// The records that were added since the last chunk.
    pub(super) fn finish(&mut self) -> Bytes {
        let mut chunk = std::mem::replace(&mut self.chunk, vec![0; HEADER]);
        chunk[5..9].copy_from_slice(&self.group.to_number().to_le_bytes());
        chunk[9..HEADER].copy_from_slice(&self.number.to_le_bytes());
        chunk[0] = FORMAT;
        let sum = checksum(FORMAT, &chunk[5..]);
        chunk[1..5].copy_from_slice(&sum.to_le_bytes());
        self.number += 1;
        Bytes::from(chunk)
    }
}

/// Bytes are not the next chunk of a group's checkpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum BadChunk {
    /// Some bit is another than was sent.
    #[error("its checksum does not fit")]
    Corrupt,
    /// Written by a later program.
    #[error("its format {0} is newer than {FORMAT}")]
    Newer(u8),
    /// Of another group, or another one of this checkpoint.
    #[error("another one was to come")]
    OutOfOrder,
    /// A sound chunk, but not of sound records in their order.
    #[error("its records don't follow those before")]
    Malformed,
}

/// The records in a chunk, which must be the one of this number.
pub(super) fn unpack(chunk: &[u8], group: GroupId, number: u32) -> Result<&[u8], BadChunk> {
    let Some((&[format, s0, s1, s2, s3], rest)) = chunk.split_first_chunk::<5>() else {
        return Err(BadChunk::Corrupt);
    };
    if checksum(format, rest) != u32::from_le_bytes([s0, s1, s2, s3]) {
        return Err(BadChunk::Corrupt);
    }
    if format != FORMAT {
        return Err(BadChunk::Newer(format));
    }
    let place = [group.to_number().to_le_bytes(), number.to_le_bytes()].concat();
    rest.strip_prefix(&place[..]).ok_or(BadChunk::OutOfOrder)
}

fn checksum(format: u8, rest: &[u8]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(&[format]), rest)
}

#[cfg(test)]
mod tests {
    use model::ShardNumber;

    use super::*;

    const GROUP: GroupId = GroupId::Shard(ShardNumber(3));

    fn chunk() -> Bytes {
        let mut packer = Packer::new(GROUP);
        assert_eq!(packer.add(&Record::End { records: 0 }), None);
        packer.finish()
    }

    #[test]
    fn any_flipped_bit_is_found() {
        let chunk = chunk();
        assert!(unpack(&chunk, GROUP, 0).is_ok());
        for bit in 0..chunk.len() * 8 {
            let mut flipped = chunk.to_vec();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert!(unpack(&flipped, GROUP, 0).is_err(), "bit {bit}");
        }
    }

    #[test]
    fn a_chunk_passes_in_its_place_only() {
        let chunk = chunk();
        let other = GroupId::Shard(ShardNumber(4));
        assert_eq!(unpack(&chunk, GROUP, 1), Err(BadChunk::OutOfOrder));
        assert_eq!(unpack(&chunk, other, 0), Err(BadChunk::OutOfOrder));
        assert_eq!(unpack(&chunk[..20], GROUP, 0), Err(BadChunk::Corrupt));
    }

    #[test]
    fn a_later_format_is_named() {
        let mut chunk = chunk().to_vec();
        chunk[0] = 9;
        let sum = checksum(9, &chunk[5..]);
        chunk[1..5].copy_from_slice(&sum.to_le_bytes());
        assert_eq!(unpack(&chunk, GROUP, 0), Err(BadChunk::Newer(9)));
    }

    #[test]
    fn a_full_chunk_comes_by_itself() {
        let mut packer = Packer::new(GROUP);
        let value = vec![7; CHUNK_BYTES / 4];
        let row = Record::Row {
            key: b"key",
            value: &value,
        };
        let full: Vec<bool> = (0..8).map(|_| packer.add(&row).is_some()).collect();
        assert_eq!(full, [false, false, false, true, false, false, false, true]);
    }
}

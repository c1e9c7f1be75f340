//! What stands in a message: a stamp that is checked on arrival, and filling.

use bytes::{BufMut, Bytes, BytesMut};
use prost::encoding::{encode_varint, encoded_len_varint};
use rand::rngs::SmallRng;
use rand::{RngCore, SeedableRng};

/// The first bytes of a message's data: four numbers of 8 bytes.
pub(crate) const STAMP_BYTES: usize = 32;
/// The filling is cut out of so many random bytes, and those of one message more.
const FILLING_BYTES: usize = 1024 * 1024;
/// Consecutive messages are cut this far apart; a prime, so that cuts repeat late.
const FILLING_STEP: u64 = 4_099;

/// The keys of `PubsubMessage.data` and `.ordering_key`, both length-delimited.
const DATA: u8 = 1 << 3 | 2;
const ORDERING_KEY: u8 = 5 << 3 | 2;

/// What identifies a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stamp {
    /// One number for each attempt to publish a message.
    pub(crate) number: u64,
    /// The number of its key.
    pub(crate) key: u64,
    /// Its place in the key, from 0; a second attempt has it again.
    pub(crate) sequence: u64,
    /// When it should have been sent: nanoseconds of the run's clock.
    pub(crate) intended: u64,
}

/// Makes messages of one size.
pub(crate) struct Payload {
    filling: Bytes,
    size: usize,
}

impl Payload {
    /// For messages of `size` bytes, at least [`STAMP_BYTES`].
    pub(crate) fn new(size: usize) -> Self {
        assert!(size >= STAMP_BYTES, "the options were checked");
        let mut filling = vec![0; FILLING_BYTES + size];
        // The same bytes in each run.
        SmallRng::seed_from_u64(1).fill_bytes(&mut filling);
        Payload {
            filling: filling.into(),
            size,
        }
    }

    /// Encodes a request's messages, all in one allocation.
    pub(crate) fn encode(&self, key: &str, stamps: &[Stamp]) -> Vec<Bytes> {
        let len = 1 + encoded_len_varint(self.size as u64) + self.size + key_field_len(key);
        let mut out = BytesMut::with_capacity(len * stamps.len());
        let message = |stamp: &Stamp| {
            self.encode_one(key, stamp, &mut out);
            out.split().freeze()
        };
        stamps.iter().map(message).collect()
    }

    fn encode_one(&self, key: &str, stamp: &Stamp, out: &mut BytesMut) {
        out.put_u8(DATA);
        encode_varint(self.size as u64, out);
        for number in [stamp.number, stamp.key, stamp.sequence, stamp.intended] {
            out.put_u64_le(number);
        }
        let cut = (stamp.number.wrapping_mul(FILLING_STEP) % FILLING_BYTES as u64) as usize;
        out.put_slice(&self.filling[cut..cut + self.size - STAMP_BYTES]);
        if !key.is_empty() {
            out.put_u8(ORDERING_KEY);
            encode_varint(key.len() as u64, out);
            out.put_slice(key.as_bytes());
        }
    }
}

impl Stamp {
    /// Reads the stamp of a message's data.
    pub(crate) fn read(data: &[u8]) -> Option<Self> {
        let (numbers, _) = data.first_chunk::<STAMP_BYTES>()?.as_chunks::<8>();
        let [number, key, sequence, intended] =
            [0, 1, 2, 3].map(|place: usize| u64::from_le_bytes(numbers[place]));
        Some(Stamp {
            number,
            key,
            sequence,
            intended,
        })
    }
}

fn key_field_len(key: &str) -> usize {
    if key.is_empty() {
        0
    } else {
        1 + encoded_len_varint(key.len() as u64) + key.len()
    }
}

#[cfg(test)]
mod tests {
    use prost::Message;
    use proto::pubsub::PubsubMessage;

    use super::*;

    #[test]
    fn what_is_encoded_by_hand_decodes_as_a_message() {
        let stamps = [7, 8].map(|number| Stamp {
            number,
            key: 3,
            sequence: 1,
            intended: 9,
        });
        for size in [STAMP_BYTES, 1_000, 70_000] {
            for key in ["", "key-3"] {
                let encoded = Payload::new(size).encode(key, &stamps);
                assert_eq!(encoded.len(), 2);
                for (bytes, stamp) in encoded.into_iter().zip(stamps) {
                    let message = PubsubMessage::decode(bytes).unwrap();
                    assert_eq!(message.ordering_key, key);
                    assert_eq!(message.data.len(), size);
                    assert_eq!(Stamp::read(&message.data), Some(stamp));
                }
            }
        }
        assert_eq!(Stamp::read(&[0; STAMP_BYTES - 1]), None);
    }
}

//! Ack ids: the right to acknowledge one delivery, as text that a client hands back.
//!
//! An ack id names subscription, key, message (and so the shard) and delivery, so that an ack
//! needs no look-up and may arrive at any node. It is signed with the cluster's secret.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};

use crate::{ClusterSecret, Epoch, Generation, Incarnation, KeyHash, MessageId, Term};

const VERSION: u8 = 1;
const BODY_BYTES: usize = 1 + 8 + 16 + 8 + 24;
const SIGNATURE_BYTES: usize = 8;
const TEXT_BYTES: usize = (BODY_BYTES + SIGNATURE_BYTES).div_ceil(3) * 4;

// 3,000 ids with their framing must fit into one Acknowledge request of 512 KiB.
const _: () = assert!(TEXT_BYTES <= crate::limits::ACK_ID_BYTES_MAX);

/// A decoded ack id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct AckId {
    /// The subscription that the message was delivered for.
    pub subscription: Incarnation,
    /// The strand of the message.
    pub key: KeyHash,
    /// The message; its id names the shard that stored it first.
    pub message: MessageId,
    /// The delivery.
    pub generation: Generation,
}

impl AckId {
    /// The text that clients see: URL-safe base64, always of the same length.
    #[must_use]
    pub fn encode(&self, secret: &ClusterSecret) -> String {
        let mut bytes = [0; BODY_BYTES + SIGNATURE_BYTES];
        let mut at = 0;
        let mut put = |part: &[u8]| {
            bytes[at..at + part.len()].copy_from_slice(part);
            at += part.len();
        };
        put(&[VERSION]);
        put(&self.subscription.0.to_be_bytes());
        put(&self.key.0);
        put(&self.message.0.to_be_bytes());
        put(&self.generation.epoch.0.to_be_bytes());
        put(&self.generation.term.0.to_be_bytes());
        put(&self.generation.counter.to_be_bytes());
        let signature = secret.signature(&bytes[..BODY_BYTES]);
        bytes[BODY_BYTES..].copy_from_slice(&signature);
        URL_SAFE_NO_PAD.encode(bytes)
    }

    /// Reads what [`AckId::encode`] wrote with the same secret; `None` for anything else.
    #[must_use]
    pub fn decode(text: &str, secret: &ClusterSecret) -> Option<AckId> {
        let mut bytes = [0; BODY_BYTES + SIGNATURE_BYTES];
        let read = URL_SAFE_NO_PAD.decode_slice(text, &mut bytes).ok()?;
        let (body, signature) = bytes.split_at(BODY_BYTES);
        if read != bytes.len() || body[0] != VERSION || secret.signature(body) != signature {
            return None;
        }
        let number = |at: usize| {
            u64::from_be_bytes(body[at..at + 8].try_into().expect("a slice of eight bytes"))
        };
        Some(AckId {
            subscription: Incarnation(number(1)),
            key: KeyHash(body[9..25].try_into().expect("a slice of sixteen bytes")),
            message: MessageId(number(25)),
            generation: Generation {
                epoch: Epoch(number(33)),
                term: Term(number(41)),
                counter: number(49),
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: ClusterSecret = ClusterSecret([7; 16]);

    fn largest() -> AckId {
        AckId {
            subscription: Incarnation(u64::MAX),
            key: KeyHash([255; 16]),
            message: MessageId::MAX,
            generation: Generation {
                epoch: Epoch(u64::MAX),
                term: Term(u64::MAX),
                counter: u64::MAX,
            },
        }
    }

    #[test]
    fn the_largest_id_round_trips_in_160_bytes() {
        let text = largest().encode(&SECRET);
        assert!(text.len() <= 160, "{} bytes", text.len());
        assert_eq!(AckId::decode(&text, &SECRET), Some(largest()));
    }

    #[test]
    fn a_changed_character_or_another_secret_is_refused() {
        let text = largest().encode(&SECRET);
        for at in 0..text.len() {
            let mut changed = text.clone().into_bytes();
            changed[at] = if changed[at] == b'A' { b'B' } else { b'A' };
            let changed = String::from_utf8(changed).unwrap();
            assert_eq!(AckId::decode(&changed, &SECRET), None, "changed at {at}");
        }
        assert_eq!(AckId::decode(&text, &ClusterSecret([8; 16])), None);
        for garbage in ["", "x", "garbage id", &text[1..], &format!("{text}A")] {
            assert_eq!(AckId::decode(garbage, &SECRET), None, "{garbage:?}");
        }
    }
}

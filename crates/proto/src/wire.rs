//! Messages that pass through a node encoded.
//!
//! A published message reaches its subscribers byte for byte, so a node never
//! needs it as a struct: decoding and encoding it again would cost an
//! allocation for each string and attribute. A message in a field has the same
//! form on the wire as bytes. So [`PublishRequest`], [`PullResponse`] and
//! [`StreamingPullResponse`] hold [`Bytes`], each one encoded [`PubsubMessage`]
//! or [`ReceivedMessage`]. Those of a received request are slices of its
//! buffer, not copies. They are *not* checked: bytes of a client may be no
//! message at all.
//!
//! [`PublishRequest`]: crate::pubsub::PublishRequest
//! [`PullResponse`]: crate::pubsub::PullResponse
//! [`StreamingPullResponse`]: crate::pubsub::StreamingPullResponse
//! [`PubsubMessage`]: crate::pubsub::PubsubMessage
//! [`ReceivedMessage`]: crate::pubsub::ReceivedMessage

use bytes::{BufMut, Bytes, BytesMut};
use prost::encoding::{encode_varint, encoded_len_varint};
use prost::{DecodeError, Message};

/// Keys of the fields of `google.pubsub.v1.ReceivedMessage`: number and wire
/// type, one byte each.
mod key {
    const VARINT: u8 = 0;
    const LENGTH_DELIMITED: u8 = 2;

    pub(super) const ACK_ID: u8 = 1 << 3 | LENGTH_DELIMITED;
    pub(super) const MESSAGE: u8 = 2 << 3 | LENGTH_DELIMITED;
    pub(super) const DELIVERY_ATTEMPT: u8 = 3 << 3 | VARINT;
}

/// Encodes one `ReceivedMessage` with one allocation and one copy.
///
/// `message` is one encoded `PubsubMessage` in parts, in this order: for
/// example the client's bytes, then the fields that the server adds. Parts may
/// be cut anywhere. As the encoding demands, an empty `ack_id` and a
/// `delivery_attempt` of 0 are left out.
pub fn encode_received_message(ack_id: &str, message: &[&[u8]], delivery_attempt: i32) -> Bytes {
    let message_len = message.iter().map(|part| part.len()).sum::<usize>();
    // A negative int32 goes out as 64 bits, its sign extended.
    let delivery_attempt = i64::from(delivery_attempt) as u64;

    let mut len = delimited_len(message_len);
    if !ack_id.is_empty() {
        len += delimited_len(ack_id.len());
    }
    if delivery_attempt != 0 {
        len += 1 + encoded_len_varint(delivery_attempt);
    }

    let mut out = BytesMut::with_capacity(len);
    if !ack_id.is_empty() {
        out.put_u8(key::ACK_ID);
        encode_varint(ack_id.len() as u64, &mut out);
        out.put_slice(ack_id.as_bytes());
    }
    out.put_u8(key::MESSAGE);
    encode_varint(message_len as u64, &mut out);
    for part in message {
        out.put_slice(part);
    }
    if delivery_attempt != 0 {
        out.put_u8(key::DELIVERY_ATTEMPT);
        encode_varint(delivery_attempt, &mut out);
    }
    assert_eq!(out.len(), len, "the length was reckoned field by field");
    out.freeze()
}

/// Encodes each message, for example the [`PubsubMessage`]s of a
/// [`PublishRequest`]. For clients.
///
/// [`PublishRequest`]: crate::pubsub::PublishRequest
/// [`PubsubMessage`]: crate::pubsub::PubsubMessage
pub fn encode_all<M: Message>(messages: &[M]) -> Vec<Bytes> {
    messages
        .iter()
        .map(|message| message.encode_to_vec().into())
        .collect()
}

/// Decodes each message, for example the [`ReceivedMessage`]s of a
/// [`PullResponse`]. For clients. Byte fields are slices of the input.
///
/// # Errors
///
/// Fails if one of them is not an encoded `M`.
///
/// [`PullResponse`]: crate::pubsub::PullResponse
/// [`ReceivedMessage`]: crate::pubsub::ReceivedMessage
pub fn decode_all<M: Message + Default>(encoded: &[Bytes]) -> Result<Vec<M>, DecodeError> {
    encoded
        .iter()
        .map(|bytes| M::decode(bytes.clone()))
        .collect()
}

/// The size of a field with a one-byte key, a length, and so many bytes.
fn delimited_len(len: usize) -> usize {
    1 + encoded_len_varint(len as u64) + len
}

//! What a message of the audit says of itself.

use bytes::{Buf, BufMut, Bytes, BytesMut};
use prost::Message as _;

/// One attempt to publish one value of a key. Two attempts of the same value are two messages, if
/// both were stored; one attempt never is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Token {
    /// The number of the key.
    pub(super) key: u32,
    /// Counts up with each value of the key, from zero.
    pub(super) value: u64,
    /// Counts up with each attempt to publish the value, from zero.
    pub(super) attempt: u32,
}

const TOKEN_BYTES: usize = 16;

impl Token {
    /// The ordering key.
    pub(super) fn ordering_key(self) -> String {
        format!("key-{}", self.key)
    }

    /// The message, as a publish request has it.
    pub(super) fn encode(self) -> Bytes {
        let mut data = BytesMut::with_capacity(TOKEN_BYTES);
        data.put_u32(self.key);
        data.put_u64(self.value);
        data.put_u32(self.attempt);
        let message = proto::pubsub::PubsubMessage {
            data: data.freeze(),
            ordering_key: self.ordering_key(),
            ..Default::default()
        };
        message.encode_to_vec().into()
    }

    fn decode(mut data: &[u8]) -> Option<Self> {
        (data.len() == TOKEN_BYTES).then(|| Token {
            key: data.get_u32(),
            value: data.get_u64(),
            attempt: data.get_u32(),
        })
    }
}

/// A delivery of a message of the audit.
pub(super) struct Delivery {
    pub(super) token: Token,
    pub(super) message_id: u64,
    pub(super) ack_id: String,
}

impl Delivery {
    /// Decodes one delivery; `None` for a message that the audit did not publish.
    pub(super) fn read(encoded: Bytes) -> Option<Self> {
        let received = proto::pubsub::ReceivedMessage::decode(encoded).ok()?;
        let message = received.message?;
        Some(Delivery {
            token: Token::decode(&message.data)?,
            message_id: message.message_id.parse().ok()?,
            ack_id: received.ack_id,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_reads_back() {
        let token = Token {
            key: 3,
            value: 1 << 40,
            attempt: 2,
        };
        let message = proto::pubsub::PubsubMessage::decode(token.encode()).unwrap();
        assert_eq!(Token::decode(&message.data), Some(token));
        assert_eq!(Token::decode(b"other"), None);
    }
}

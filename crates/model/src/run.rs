//! The payload of a run: the messages of one publish request, as stored.
//!
//! A run is a sequence of messages of one strand that were published together. Each message stays
//! the bytes that the client sent (an encoded `google.pubsub.v1.PubsubMessage`); a delivery
//! appends message id and publish time, which by protobuf's last-one-wins rule also overrule
//! whatever a client put there.
//!
//! Layout: count (u32), then one length (u32) per message, then the messages. Little endian.

use bytes::{BufMut, Bytes, BytesMut};
use thiserror::Error;

/// The messages of one publish request. Cheap to clone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunPayload(Bytes);

impl Default for RunPayload {
    fn default() -> Self {
        RunPayload::new(&[])
    }
}

/// The bytes of a stored run do not have the layout of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("run payload of {bytes} bytes is malformed")]
pub struct MalformedRun {
    bytes: usize,
}

impl RunPayload {
    /// Joins messages into one payload, by one copy.
    #[must_use]
    pub fn new(messages: &[Bytes]) -> Self {
        let total: usize = messages.iter().map(Bytes::len).sum();
        let mut bytes = BytesMut::with_capacity(4 + 4 * messages.len() + total);
        bytes.put_u32_le(messages.len() as u32);
        for message in messages {
            bytes.put_u32_le(message.len() as u32);
        }
        for message in messages {
            bytes.put_slice(message);
        }
        RunPayload(bytes.freeze())
    }

    /// Checks the layout of stored bytes.
    ///
    /// # Errors
    /// [`MalformedRun`] when lengths and bytes do not fit each other.
    pub fn from_stored(bytes: Bytes) -> Result<Self, MalformedRun> {
        let malformed = MalformedRun { bytes: bytes.len() };
        let run = RunPayload(bytes);
        let header = (run.0.len() >= 4)
            .then(|| run.len().checked_mul(4)?.checked_add(4))
            .flatten()
            .filter(|header| *header <= run.0.len())
            .ok_or(malformed)?;
        let total: usize = (0..run.len()).map(|at| run.message_bytes(at)).sum();
        if header + total == run.0.len() {
            Ok(run)
        } else {
            Err(malformed)
        }
    }

    /// The stored bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &Bytes {
        &self.0
    }

    /// How many messages the run has.
    #[must_use]
    pub fn len(&self) -> usize {
        self.number(0)
    }

    /// Whether the run has no message.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The size of message `at` in bytes, as flow control counts it.
    #[must_use]
    pub fn message_bytes(&self, at: usize) -> usize {
        self.number(1 + at)
    }

    /// The messages in order, each a slice of the payload.
    pub fn messages(&self) -> impl Iterator<Item = Bytes> + '_ {
        let mut start = 4 + 4 * self.len();
        (0..self.len()).map(move |at| {
            let end = start + self.message_bytes(at);
            let message = self.0.slice(start..end);
            start = end;
            message
        })
    }

    /// Message `at` of the run.
    ///
    /// # Panics
    /// When the run has no message `at`.
    #[must_use]
    pub fn message(&self, at: usize) -> Bytes {
        assert!(at < self.len(), "message {at} of a run of {}", self.len());
        let before: usize = (0..at).map(|earlier| self.message_bytes(earlier)).sum();
        let start = 4 + 4 * self.len() + before;
        self.0.slice(start..start + self.message_bytes(at))
    }

    fn number(&self, at: usize) -> usize {
        let bytes = self.0[4 * at..4 * at + 4]
            .try_into()
            .expect("a slice of four bytes");
        u32::from_le_bytes(bytes) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_come_back_in_order() {
        let messages = [
            Bytes::from_static(b"one"),
            Bytes::new(),
            Bytes::from_static(b"three"),
        ];
        let run = RunPayload::new(&messages);
        let stored = RunPayload::from_stored(run.as_bytes().clone()).unwrap();
        assert_eq!(stored.messages().collect::<Vec<_>>(), messages);
        assert_eq!(stored.message(2), messages[2]);
        assert_eq!((stored.len(), stored.message_bytes(0)), (3, 3));
    }

    #[test]
    fn a_cut_or_lengthened_payload_is_malformed() {
        let whole = RunPayload::new(&[Bytes::from_static(b"one")])
            .as_bytes()
            .clone();
        for cut in 0..whole.len() {
            assert!(
                RunPayload::from_stored(whole.slice(..cut)).is_err(),
                "cut at {cut}"
            );
        }
        let longer = [whole.as_ref(), b"x"].concat();
        assert!(RunPayload::from_stored(longer.into()).is_err());
        assert!(RunPayload::from_stored(Bytes::from_static(&[255; 8])).is_err());
    }
}

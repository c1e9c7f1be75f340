//! Deliveries as responses: encoded once, split by what clients accept in one response.

use bytes::{BufMut, Bytes, BytesMut};
use engine::dispatch::Delivered;
use model::limits::{RESPONSE_BYTES_MAX, RESPONSE_MESSAGES_MAX};
use model::{AckId, ClusterSecret};
use proto::wire::encode_received_message;

/// The messages of one response.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    /// What they are acknowledged with.
    pub(crate) acks: Vec<AckId>,
    /// Each an encoded `ReceivedMessage`.
    pub(crate) messages: Vec<Bytes>,
    bytes: usize,
}

impl Batch {
    fn has_room_for(&self, bytes: usize) -> bool {
        let small = self.bytes + bytes <= RESPONSE_BYTES_MAX;
        self.messages.len() < RESPONSE_MESSAGES_MAX
            && (small || model::sabotage!("response-of-any-size"))
    }
}

/// Encodes deliveries as `ReceivedMessage`s, in order, in batches that each fit one response: of at
/// most [`RESPONSE_MESSAGES_MAX`], and of at most [`RESPONSE_BYTES_MAX`] unless one message alone
/// is larger.
pub(crate) fn batches(secret: &ClusterSecret, deliveries: &[Delivered]) -> Vec<Batch> {
    let mut batches: Vec<Batch> = Vec::new();
    for delivery in deliveries {
        let message = received_message(secret, delivery);
        if !batches
            .last()
            .is_some_and(|batch| batch.has_room_for(message.len()))
        {
            batches.push(Batch::default());
        }
        let batch = batches.last_mut().expect("there is one with room");
        batch.acks.push(delivery.ack);
        batch.bytes += message.len();
        batch.messages.push(message);
    }
    batches
}

/// One encoded `ReceivedMessage`: the publisher's bytes, then message id and publish time. Where
/// the publisher set these two itself, the later field overrules the earlier one.
fn received_message(secret: &ClusterSecret, delivery: &Delivered) -> Bytes {
    let stamp = id_and_time(delivery);
    encode_received_message(
        &delivery.ack.encode(secret),
        &[&delivery.message, &stamp],
        i32::try_from(delivery.delivery_attempt).unwrap_or(i32::MAX),
    )
}

/// `message_id` (field 3) and `publish_time` (field 4) of `PubsubMessage`, encoded. Seconds and
/// nanoseconds are written even when zero, so that nothing of a publisher's own time is left.
fn id_and_time(delivery: &Delivered) -> Bytes {
    const MESSAGE_ID: u8 = 3 << 3 | 2;
    const PUBLISH_TIME: u8 = 4 << 3 | 2;
    const SECONDS: u8 = 1 << 3;
    const NANOS: u8 = 2 << 3;
    let id = delivery.ack.message.to_string();
    let mut time = BytesMut::with_capacity(16);
    time.put_u8(SECONDS);
    prost::encoding::encode_varint(delivery.published.seconds() as u64, &mut time);
    time.put_u8(NANOS);
    prost::encoding::encode_varint(delivery.published.nanos() as u64, &mut time);

    let mut out = BytesMut::with_capacity(4 + id.len() + time.len());
    out.put_u8(MESSAGE_ID);
    out.put_u8(id.len() as u8);
    out.put_slice(id.as_bytes());
    out.put_u8(PUBLISH_TIME);
    out.put_u8(time.len() as u8);
    out.put_slice(&time);
    out.freeze()
}

#[cfg(test)]
mod tests {
    use model::{Generation, Incarnation, KeyHash, MessageId, Timestamp};
    use prost::Message;
    use proto::pubsub::{PubsubMessage, ReceivedMessage};

    use super::*;

    const SECRET: ClusterSecret = ClusterSecret([1; 16]);

    fn delivered(message: &PubsubMessage) -> Delivered {
        Delivered {
            ack: AckId {
                subscription: Incarnation(1),
                key: KeyHash([2; 16]),
                message: MessageId(77),
                generation: Generation::default(),
            },
            published: Timestamp(5_000_000_000),
            message: message.encode_to_vec().into(),
            delivery_attempt: 0,
        }
    }

    fn of_size(bytes: usize) -> Delivered {
        delivered(&PubsubMessage {
            data: vec![0; bytes].into(),
            ..PubsubMessage::default()
        })
    }

    fn lengths(secret: &ClusterSecret, deliveries: &[Delivered]) -> Vec<usize> {
        batches(secret, deliveries)
            .iter()
            .map(|batch| batch.messages.len())
            .collect()
    }

    #[test]
    fn id_and_time_overrule_what_the_publisher_wrote() {
        let published = PubsubMessage {
            data: "data".into(),
            message_id: "mine".into(),
            publish_time: Some(prost_types::Timestamp {
                seconds: 9,
                nanos: 9,
            }),
            ordering_key: "key".into(),
            ..PubsubMessage::default()
        };
        let delivery = delivered(&published);
        let received = ReceivedMessage::decode(received_message(&SECRET, &delivery)).unwrap();
        assert_eq!(AckId::decode(&received.ack_id, &SECRET), Some(delivery.ack));
        let expected = PubsubMessage {
            message_id: "77".into(),
            publish_time: Some(prost_types::Timestamp {
                seconds: 5,
                nanos: 0,
            }),
            ..published
        };
        assert_eq!(received.message, Some(expected));
    }

    #[test]
    fn a_response_stays_under_what_clients_accept() {
        let megabytes: Vec<_> = (0..20).map(|_| of_size(1_000_000)).collect();
        let found = lengths(&SECRET, &megabytes);
        assert_eq!(found, [3, 3, 3, 3, 3, 3, 2]);
        let small: Vec<_> = (0..1_001).map(|_| of_size(1)).collect();
        let found = lengths(&SECRET, &small);
        assert_eq!(found, [1_000, 1]);
    }

    #[test]
    fn a_larger_message_travels_alone() {
        let deliveries = [of_size(10), of_size(9_900_000), of_size(10)];
        let found = lengths(&SECRET, &deliveries);
        assert_eq!(found, [1, 1, 1]);
    }
}

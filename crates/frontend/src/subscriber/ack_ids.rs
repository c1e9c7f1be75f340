//! Ack ids and deadlines as requests carry them.

use std::time::Duration;

use model::limits::{ACK_DEADLINE_SECONDS_MAX, ACK_REQUEST_BYTES_MAX};
use model::{AckId, ClusterSecret};
use prost::Message;
use thiserror::Error;

/// Why a request with ack ids is refused as a whole: none of its ids is processed.
#[derive(Debug, PartialEq, Eq, Error)]
pub(crate) enum InvalidAckIds {
    #[error("The request has no ack_ids.")]
    None,
    #[error("Request payload size exceeds the limit: {ACK_REQUEST_BYTES_MAX} bytes.")]
    TooLarge,
    #[error("You have passed an invalid ack ID to the service (ack_id={0}).")]
    Malformed(String),
    #[error(
        "ack_deadline_seconds is {seconds}: it must be between 0 and {ACK_DEADLINE_SECONDS_MAX}."
    )]
    Deadline { seconds: i32 },
}

/// Checks the size of a unary request with ack ids.
pub(crate) fn check_size(request: &impl Message, ids: &[String]) -> Result<(), InvalidAckIds> {
    if ids.is_empty() {
        Err(InvalidAckIds::None)
    } else if request.encoded_len() > ACK_REQUEST_BYTES_MAX
        && !model::sabotage!("ack-list-of-any-size")
    {
        Err(InvalidAckIds::TooLarge)
    } else {
        Ok(())
    }
}

/// Decodes all ids, or none.
pub(crate) fn decode(ids: &[String], secret: &ClusterSecret) -> Result<Vec<AckId>, InvalidAckIds> {
    let decoded = ids
        .iter()
        .map(|id| AckId::decode(id, secret).ok_or_else(|| InvalidAckIds::Malformed(shortened(id))));
    decoded.collect()
}

/// Checks the deadline of a ModifyAckDeadline; zero is a nack.
pub(crate) fn deadline(seconds: i32) -> Result<Duration, InvalidAckIds> {
    match u32::try_from(seconds) {
        Ok(valid) if valid <= ACK_DEADLINE_SECONDS_MAX => Ok(Duration::from_secs(valid.into())),
        _ => Err(InvalidAckIds::Deadline { seconds }),
    }
}

/// A client's text in an error is cut to what an id may have.
fn shortened(id: &str) -> String {
    id.chars().take(model::limits::ACK_ID_BYTES_MAX).collect()
}

#[cfg(test)]
mod tests {
    use model::{Generation, Incarnation, KeyHash, MessageId};
    use proto::pubsub::AcknowledgeRequest;

    use super::*;

    /// The answer to as many ids of 160 bytes as make a request of so many bytes.
    fn checked(bytes: usize) -> Result<(), InvalidAckIds> {
        let mut request = AcknowledgeRequest {
            subscription: "projects/p/subscriptions/abc".into(),
            ..AcknowledgeRequest::default()
        };
        while request.encoded_len() + 163 <= bytes {
            request.ack_ids.push("x".repeat(160));
        }
        let left = bytes - request.encoded_len();
        request.subscription += &"y".repeat(left);
        assert_eq!(request.encoded_len(), bytes);
        check_size(&request, &request.ack_ids)
    }

    #[test]
    fn half_a_mebibyte_and_not_one_byte_more() {
        assert_eq!(checked(ACK_REQUEST_BYTES_MAX), Ok(()));
        let larger = checked(ACK_REQUEST_BYTES_MAX + 1);
        assert_eq!(larger, Err(InvalidAckIds::TooLarge));
        let none = check_size(&AcknowledgeRequest::default(), &[]);
        assert_eq!(none, Err(InvalidAckIds::None));
    }

    #[test]
    fn one_malformed_id_refuses_all() {
        let secret = ClusterSecret([1; 16]);
        let ack = AckId {
            subscription: Incarnation(1),
            key: KeyHash([2; 16]),
            message: MessageId(3),
            generation: Generation::default(),
        };
        let id = ack.encode(&secret);
        assert_eq!(decode(std::slice::from_ref(&id), &secret), Ok(vec![ack]));
        let malformed = decode(&[id, "not-an-id".into()], &secret);
        assert_eq!(malformed, Err(InvalidAckIds::Malformed("not-an-id".into())));
    }
}

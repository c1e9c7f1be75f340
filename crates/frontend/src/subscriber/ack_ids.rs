//! Ack ids and deadlines as requests carry them.

use std::time::Duration;

use model::limits::{ACK_DEADLINE_SECONDS_MAX, ACK_REQUEST_BYTES_MAX};
use model::{AckId, ClusterSecret, Incarnation};
use prost::Message;
use thiserror::Error;

/// Why a request with ack ids is refused.
#[derive(Debug, PartialEq, Eq, Error)]
pub(crate) enum InvalidAckIds {
    #[error("The request has no ack_ids.")]
    None,
    #[error("Request payload size exceeds the limit: {ACK_REQUEST_BYTES_MAX} bytes.")]
    TooLarge,
    /// Or of another subscription. All other ids of the request are processed.
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

/// The ids of a request that are of one subscription, each with its place in the request.
pub(crate) fn own(
    ids: &[String],
    subscription: Incarnation,
    secret: &ClusterSecret,
) -> (Vec<usize>, Vec<AckId>) {
    let decoded = ids.iter().map(|id| AckId::decode(id, secret));
    let own = decoded.map(|id| id.filter(|id| id.subscription == subscription));
    let own = own.enumerate().filter_map(|(place, id)| Some((place, id?)));
    own.unzip()
}

/// The replies to the ids at these places; none for an id that is at no place.
pub(crate) fn in_order<R: Copy>(ids: usize, places: &[usize], replies: &[R]) -> Vec<Option<R>> {
    assert_eq!(places.len(), replies.len(), "one reply for each id");
    let mut ordered = vec![None; ids];
    for (place, reply) in places.iter().zip(replies) {
        ordered[*place] = Some(*reply);
    }
    ordered
}

/// That an id names no delivery of the subscription.
pub(crate) fn malformed(id: &str) -> InvalidAckIds {
    InvalidAckIds::Malformed(shortened(id))
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
    use model::{Generation, KeyHash, MessageId};
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
    fn ids_of_nobody_and_of_others_leave_the_rest_alone() {
        let secret = ClusterSecret([1; 16]);
        let of = |subscription| AckId {
            subscription: Incarnation(subscription),
            key: KeyHash([2; 16]),
            message: MessageId(3),
            generation: Generation::default(),
        };
        let ids = [
            "not-an-id".to_owned(),
            of(1).encode(&secret),
            of(2).encode(&secret),
            of(1).encode(&secret),
        ];
        let (places, own) = own(&ids, Incarnation(1), &secret);
        assert_eq!((&places[..], own), (&[1, 3][..], vec![of(1); 2]));
        let replies = in_order(ids.len(), &places, &['a', 'b']);
        assert_eq!(replies, [None, Some('a'), None, Some('b')]);
    }
}

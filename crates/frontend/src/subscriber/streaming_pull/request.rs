//! What a client may say on a stream.

use std::time::Duration;

use engine::dispatch::Credit;
use model::limits::{
    ACK_DEADLINE_SECONDS_MAX, ACK_DEADLINE_SECONDS_MIN, OUTSTANDING_BYTES_MAX,
    OUTSTANDING_MESSAGES_MAX,
};
use model::name::InvalidName;
use model::{AckId, ClientId, ClusterSecret, SubscriptionName};
use proto::pubsub::StreamingPullRequest;
use thiserror::Error;

use crate::subscriber::ack_ids::{self, InvalidAckIds};

/// Why a stream is ended for something the client said.
#[derive(Debug, PartialEq, Eq, Error)]
pub(crate) enum InvalidStreamRequest {
    #[error("{0}")]
    Name(#[from] InvalidName),
    #[error(
        "stream_ack_deadline_seconds is {seconds}: it must be between {ACK_DEADLINE_SECONDS_MIN} \
         and {ACK_DEADLINE_SECONDS_MAX}, and the first request must set it."
    )]
    AckDeadline { seconds: i32 },
    #[error("{field} may only be set in the first request of a stream.")]
    OnlyInFirst { field: &'static str },
    #[error(
        "modify_deadline_seconds has {seconds} entries and modify_deadline_ack_ids has {ids}: \
         each id needs its deadline."
    )]
    UnequalLengths { seconds: usize, ids: usize },
    #[error("{0}")]
    AckIds(#[from] InvalidAckIds),
}

/// The first request of a stream.
#[derive(Debug)]
pub(crate) struct First {
    pub(crate) subscription: SubscriptionName,
    pub(crate) ack_deadline: Duration,
    pub(crate) client: Option<ClientId>,
    pub(crate) limit: Credit,
    /// Whether the client expects an answer to its heartbeats.
    pub(crate) answers_heartbeats: bool,
}

/// What any request of a stream may carry.
#[derive(Debug, Default)]
pub(crate) struct Asked {
    pub(crate) acks: Vec<AckId>,
    pub(crate) deadlines: Vec<(AckId, Duration)>,
    pub(crate) ack_deadline: Option<Duration>,
    /// The first id that is none, for which the stream ends once the rest is carried out.
    pub(crate) malformed: Option<InvalidAckIds>,
}

impl Asked {
    /// A request that carries nothing is a heartbeat.
    pub(crate) fn is_heartbeat(&self) -> bool {
        let Asked {
            acks,
            deadlines,
            ack_deadline,
            malformed,
        } = self;
        let ids = acks.len() + deadlines.len();
        ids == 0 && ack_deadline.is_none() && malformed.is_none()
    }
}

/// Reads the first request.
pub(crate) fn first(request: &StreamingPullRequest) -> Result<First, InvalidStreamRequest> {
    Ok(First {
        subscription: SubscriptionName::parse(&request.subscription)?,
        ack_deadline: stream_deadline(request.stream_ack_deadline_seconds)?,
        client: (!request.client_id.is_empty())
            .then(|| ClientId(request.client_id.as_str().into())),
        limit: limit(request),
        answers_heartbeats: request.protocol_version >= 1,
    })
}

/// Reads a later request.
pub(crate) fn later(
    request: &StreamingPullRequest,
    secret: &ClusterSecret,
) -> Result<Asked, InvalidStreamRequest> {
    let only_first = [
        ("subscription", !request.subscription.is_empty()),
        (
            "max_outstanding_messages",
            request.max_outstanding_messages != 0,
        ),
        ("max_outstanding_bytes", request.max_outstanding_bytes != 0),
        ("protocol_version", request.protocol_version != 0),
    ];
    if let Some((field, _)) = only_first.into_iter().find(|(_, set)| *set) {
        return Err(InvalidStreamRequest::OnlyInFirst { field });
    }
    let mut asked = asked(request, secret)?;
    if request.stream_ack_deadline_seconds != 0 {
        asked.ack_deadline = Some(stream_deadline(request.stream_ack_deadline_seconds)?);
    }
    Ok(asked)
}

/// Reads the acks and deadlines that the first request may carry like any other.
pub(crate) fn asked(
    request: &StreamingPullRequest,
    secret: &ClusterSecret,
) -> Result<Asked, InvalidStreamRequest> {
    let (seconds, ids) = (
        request.modify_deadline_seconds.len(),
        request.modify_deadline_ack_ids.len(),
    );
    if seconds != ids {
        return Err(InvalidStreamRequest::UnequalLengths { seconds, ids });
    }
    let deadlines = request
        .modify_deadline_seconds
        .iter()
        .map(|seconds| ack_ids::deadline(*seconds));
    let deadlines = deadlines.collect::<Result<Vec<_>, _>>()?;
    let mut malformed = None;
    let mut decode = |id: &String| {
        let decoded = AckId::decode(id, secret);
        if decoded.is_none() {
            malformed.get_or_insert_with(|| ack_ids::malformed(id));
        }
        decoded
    };
    let acks = request.ack_ids.iter().filter_map(&mut decode).collect();
    let ids = request.modify_deadline_ack_ids.iter();
    let deadlines = ids.zip(deadlines);
    let deadlines = deadlines.filter_map(|(id, deadline)| Some((decode(id)?, deadline)));
    Ok(Asked {
        acks,
        deadlines: deadlines.collect(),
        ack_deadline: None,
        malformed,
    })
}

fn stream_deadline(seconds: i32) -> Result<Duration, InvalidStreamRequest> {
    match u32::try_from(seconds) {
        Ok(valid) if (ACK_DEADLINE_SECONDS_MIN..=ACK_DEADLINE_SECONDS_MAX).contains(&valid) => {
            Ok(Duration::from_secs(u64::from(valid)))
        }
        _ => Err(InvalidStreamRequest::AckDeadline { seconds }),
    }
}

/// The client's limits; where it sets none, ours.
fn limit(request: &StreamingPullRequest) -> Credit {
    let messages = u32::try_from(request.max_outstanding_messages).unwrap_or(0);
    let bytes = u64::try_from(request.max_outstanding_bytes).unwrap_or(0);
    Credit {
        messages: if messages == 0 {
            OUTSTANDING_MESSAGES_MAX
        } else {
            messages
        },
        bytes: if bytes == 0 {
            OUTSTANDING_BYTES_MAX
        } else {
            bytes
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: ClusterSecret = ClusterSecret([1; 16]);

    fn request() -> StreamingPullRequest {
        StreamingPullRequest {
            subscription: "projects/p/subscriptions/abc".into(),
            stream_ack_deadline_seconds: 10,
            ..StreamingPullRequest::default()
        }
    }

    #[test]
    fn the_first_request_names_a_subscription_and_a_deadline() {
        assert!(first(&request()).is_ok());
        let nameless = StreamingPullRequest {
            subscription: String::new(),
            ..request()
        };
        assert!(matches!(
            first(&nameless),
            Err(InvalidStreamRequest::Name(_))
        ));
        for seconds in [0, 9, 601, -1] {
            let asked = StreamingPullRequest {
                stream_ack_deadline_seconds: seconds,
                ..request()
            };
            let refused = first(&asked).unwrap_err();
            assert_eq!(refused, InvalidStreamRequest::AckDeadline { seconds });
        }
    }

    #[test]
    fn limits_that_are_not_positive_are_ours() {
        let asked = StreamingPullRequest {
            max_outstanding_messages: -1,
            ..request()
        };
        let ours = Credit {
            messages: OUTSTANDING_MESSAGES_MAX,
            bytes: OUTSTANDING_BYTES_MAX,
        };
        assert_eq!(first(&asked).unwrap().limit, ours);
    }

    #[test]
    fn later_requests_do_not_repeat_the_first() {
        let limits = StreamingPullRequest {
            max_outstanding_messages: 5,
            ..Default::default()
        };
        let version = StreamingPullRequest {
            protocol_version: 1,
            ..Default::default()
        };
        for (repeated, field) in [
            (request(), "subscription"),
            (limits, "max_outstanding_messages"),
            (version, "protocol_version"),
        ] {
            let refused = later(&repeated, &SECRET).unwrap_err();
            assert_eq!(refused, InvalidStreamRequest::OnlyInFirst { field });
        }
        assert!(
            later(&StreamingPullRequest::default(), &SECRET)
                .unwrap()
                .is_heartbeat()
        );
    }

    #[test]
    fn each_id_has_its_deadline() {
        let one = StreamingPullRequest {
            modify_deadline_seconds: vec![1],
            ..Default::default()
        };
        let refused = later(&one, &SECRET).unwrap_err();
        assert_eq!(
            refused,
            InvalidStreamRequest::UnequalLengths { seconds: 1, ids: 0 }
        );
    }
}

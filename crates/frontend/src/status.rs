//! Every failure as a gRPC status: the only place where codes are chosen.
//!
//! Clients retry UNAVAILABLE (and, per call, some others), so a permanent problem never answers
//! with it, nor with UNKNOWN, ABORTED or INTERNAL. StreamingPull never ends with
//! RESOURCE_EXHAUSTED, which one client takes for the end.

use std::collections::HashMap;

use engine::Fault;
use engine::control::read::ListError;
use engine::control::request::InvalidRequest;
use engine::control::{NodeRejected, Rejected};
use engine::dispatch::Refused;
use model::name::InvalidName;
use router::acknowledge::AcknowledgeError;
use router::{LookError, PublishError, ResolveError, ShardError};
use thiserror::Error;
use tonic::{Code, Status};
use tonic_types::{ErrorDetails, StatusExt};

use crate::publisher::check::InvalidPublish;
use crate::subscriber::ack_ids::InvalidAckIds;
use crate::subscriber::acknowledge::InvalidAcknowledge;
use crate::subscriber::exactly_once::{AckFailure, AckFailures};
use crate::subscriber::pull::InvalidPull;
use crate::subscriber::streaming_pull::InvalidStreamRequest;
use crate::undecodable::Undecodable;

/// The domain of every `ErrorInfo`.
const DOMAIN: &str = "pubsub.googleapis.com";

/// A status on its way to the client.
#[derive(Debug)]
pub(crate) struct Failure(Box<Status>);

impl Failure {
    fn new(code: Code, text: impl ToString) -> Self {
        Failure(Box::new(Status::new(code, text.to_string())))
    }
}

impl From<Failure> for Status {
    fn from(failure: Failure) -> Self {
        *failure.0
    }
}

/// The transport's own: the client is gone, or sent what is no request.
impl From<Status> for Failure {
    fn from(status: Status) -> Self {
        match Undecodable::of(&status) {
            Some(undecodable) => undecodable.into(),
            None => Failure(Box::new(status)),
        }
    }
}

impl From<Undecodable> for Failure {
    fn from(error: Undecodable) -> Self {
        Failure::new(Code::InvalidArgument, error)
    }
}

/// *Retry*: the service can't be had right now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub(crate) enum Unavailable {
    /// The node shuts down.
    #[error("This node is shutting down. Please try again.")]
    Draining,
    /// The nodes that keep the catalogue could not be asked, or did not answer in time.
    #[error("The catalogue did not answer in time; a change may still be made. Please try again.")]
    Catalogue,
    /// The stream is at its age, or idle, or its shard has a new leader.
    #[error("The service was unable to fulfill your request. Please try again. [code=8a75]")]
    StreamClosed,
}

impl From<Unavailable> for Failure {
    fn from(why: Unavailable) -> Self {
        Failure::new(Code::Unavailable, why)
    }
}

impl From<InvalidPublish> for Failure {
    fn from(why: InvalidPublish) -> Self {
        let code = match why {
            InvalidPublish::MixedKeys if model::sabotage!("mixed-keys-are-invalid") => {
                Code::InvalidArgument
            }
            InvalidPublish::MixedKeys => Code::FailedPrecondition,
            InvalidPublish::Name(_)
            | InvalidPublish::NoMessages
            | InvalidPublish::TooManyMessages { .. }
            | InvalidPublish::TooLarge { .. }
            | InvalidPublish::Malformed { .. }
            | InvalidPublish::Empty { .. }
            | InvalidPublish::TooManyAttributes { .. }
            | InvalidPublish::NoAttributeKey { .. }
            | InvalidPublish::AttributeKey { .. }
            | InvalidPublish::AttributeValue { .. }
            | InvalidPublish::OrderingKey { .. } => Code::InvalidArgument,
        };
        Failure::new(code, why)
    }
}

impl From<InvalidName> for Failure {
    fn from(why: InvalidName) -> Self {
        Failure::new(Code::InvalidArgument, why)
    }
}

impl From<InvalidRequest> for Failure {
    fn from(why: InvalidRequest) -> Self {
        let code = match why {
            InvalidRequest::Name(_)
            | InvalidRequest::Mask(_)
            | InvalidRequest::Value(_)
            | InvalidRequest::Filter(_) => Code::InvalidArgument,
            InvalidRequest::NotSupported(_) => Code::Unimplemented,
        };
        Failure::new(code, why)
    }
}

impl From<Rejected> for Failure {
    fn from(why: Rejected) -> Self {
        let code = match why {
            Rejected::TopicExists(_) | Rejected::SubscriptionExists(_) => Code::AlreadyExists,
            Rejected::TopicNotFound(_)
            | Rejected::DeadLetterTopicNotFound(_)
            | Rejected::SubscriptionNotFound(_) => Code::NotFound,
            Rejected::QuotaExceeded(_) => Code::ResourceExhausted,
            Rejected::TooFewRegions { .. } | Rejected::RegionExcluded(_) => {
                Code::FailedPrecondition
            }
            Rejected::DeadLetterToOwnTopic(_)
            | Rejected::UnknownRegion { .. }
            | Rejected::NoStoragePolicy(_)
            | Rejected::NoDeadLetterTopic(_)
            | Rejected::BackoffsCrossed { .. } => Code::InvalidArgument,
            // Only a node founds, and no client asks it to.
            Rejected::AlreadyFounded => Code::Internal,
            Rejected::Node(ref why) => node_code(why),
        };
        Failure::new(code, why)
    }
}

fn node_code(why: &NodeRejected) -> Code {
    match why {
        NodeRejected::NotFound(_)
        | NodeRejected::NoSuchGroup(_)
        | NodeRejected::NoSuchRegion(_) => Code::NotFound,
        NodeRejected::NameTaken { .. } => Code::AlreadyExists,
        NodeRejected::TooMany | NodeRejected::TooManyShards(_) => Code::ResourceExhausted,
        NodeRejected::NotFounded
        | NodeRejected::Removed(_)
        | NodeRejected::Restarted(_)
        | NodeRejected::FormatLevel { .. } => Code::FailedPrecondition,
    }
}

impl From<LookError> for Failure {
    fn from(why: LookError) -> Self {
        match why {
            LookError::Unavailable(why) => why.into(),
            LookError::Fault(fault) => fault.into(),
        }
    }
}

impl From<ListError> for Failure {
    fn from(why: ListError) -> Self {
        match why {
            ListError::Page(why) => Failure::new(Code::InvalidArgument, why),
            ListError::TopicNotFound(_) => Failure::new(Code::NotFound, why),
            ListError::Fault(fault) => fault.into(),
        }
    }
}

/// A node whose state is damaged stops; until it has, clients go elsewhere.
impl From<Fault> for Failure {
    fn from(fault: Fault) -> Self {
        Failure::new(
            Code::Unavailable,
            format!("This node is about to stop: {fault}."),
        )
    }
}

impl From<InvalidPull> for Failure {
    fn from(why: InvalidPull) -> Self {
        Failure::new(Code::InvalidArgument, why)
    }
}

impl From<InvalidAckIds> for Failure {
    fn from(why: InvalidAckIds) -> Self {
        Failure::new(Code::InvalidArgument, why)
    }
}

impl From<InvalidAcknowledge> for Failure {
    fn from(why: InvalidAcknowledge) -> Self {
        Failure::new(Code::InvalidArgument, why)
    }
}

impl From<InvalidStreamRequest> for Failure {
    fn from(why: InvalidStreamRequest) -> Self {
        Failure::new(Code::InvalidArgument, why)
    }
}

impl From<ResolveError> for Failure {
    fn from(why: ResolveError) -> Self {
        match why {
            ResolveError::NotFound(_) => Failure::new(Code::NotFound, why),
            ResolveError::Detached(_) | ResolveError::NotInTransit(_) => {
                Failure::new(Code::FailedPrecondition, why)
            }
            ResolveError::Draining => Failure::new(
                Code::Unavailable,
                "This node is being drained. Connect to another.",
            ),
            ResolveError::Ended(_) => Unavailable::StreamClosed.into(),
            ResolveError::Unavailable(why) => why.into(),
            ResolveError::Fault(fault) => fault.into(),
        }
    }
}

impl From<PublishError> for Failure {
    fn from(why: PublishError) -> Self {
        match why {
            PublishError::NotFound(_) => Failure::new(Code::NotFound, why),
            PublishError::NotInTransit(_) => Failure::new(Code::FailedPrecondition, why),
            PublishError::NoRoute(_)
            | PublishError::Misplaced(_)
            | PublishError::TooLargeToMove(_) => Failure::new(Code::Unavailable, why),
            PublishError::Fault(fault) => fault.into(),
            PublishError::Shard(ShardError::Refused(refused)) => refused_publish(refused),
            PublishError::Shard(why @ ShardError::Moved { .. }) => {
                Failure::new(Code::Unavailable, format!("{why}. Please try again."))
            }
            PublishError::Shard(ShardError::Unavailable(why)) => why.into(),
        }
    }
}

fn refused_publish(refused: Refused) -> Failure {
    match refused {
        Refused::TopicClosed => Failure::new(Code::NotFound, "The topic was deleted."),
        Refused::DeadlinePassed => {
            let text = "The deadline passed before anything was stored.";
            Failure::new(Code::DeadlineExceeded, text)
        }
        Refused::Overloaded => {
            let text = "Too many messages wait to be stored. Slow down and try again.";
            Failure::new(Code::ResourceExhausted, text)
        }
        Refused::NotOwner => {
            let text = "The ordering key is on its way to another shard. Please try again.";
            Failure::new(Code::Unavailable, text)
        }
        Refused::DiskFull => {
            let text = "The disk is nearly full. Acknowledge or delete what is stored, or free \
                        space; publishing then goes on by itself.";
            Failure::new(Code::ResourceExhausted, text)
        }
    }
}

impl From<router::Unavailable> for Failure {
    fn from(why: router::Unavailable) -> Self {
        Failure::new(Code::Unavailable, format!("The {why}. Please try again."))
    }
}

impl From<AcknowledgeError> for Failure {
    fn from(why: AcknowledgeError) -> Self {
        match why {
            AcknowledgeError::Resolve(why) => why.into(),
            AcknowledgeError::OtherSubscription(_) => Failure::new(Code::InvalidArgument, why),
            AcknowledgeError::Unavailable(why) => why.into(),
        }
    }
}

impl From<AckFailures> for Failure {
    fn from(why: AckFailures) -> Self {
        let ids = match why {
            AckFailures::Ids(ids) => ids,
            AckFailures::SomeIds(ids) => {
                let text = "More acknowledgement ids failed than this answer holds. Ask again for \
                            those that it does not list.";
                return ack_failures(Code::Aborted, text, ids);
            }
            AckFailures::Superseded => {
                let text = "Some messages are being sent again. Acknowledge the new deliveries.";
                return Failure::new(Code::Unavailable, text);
            }
            // Clients that retry would wait with all other acks meanwhile, and what is to be sent
            // again may wait for the room that those make.
            AckFailures::Void => {
                let text = "Some messages will be sent again. Acknowledge the new deliveries.";
                return Failure::new(Code::Aborted, text);
            }
            AckFailures::NotOurs(why) => return why.into(),
        };
        let permanent = ids
            .iter()
            .any(|(_, failure)| *failure == AckFailure::Invalid);
        let (code, text) = if permanent {
            (
                Code::InvalidArgument,
                "Some acknowledgement ids in the request were invalid. This could be because the \
                 acknowledgement ids have expired or the acknowledgement ids were malformed.",
            )
        } else {
            (
                Code::FailedPrecondition,
                "Some acknowledgement ids in the request were sent out of order.",
            )
        };
        ack_failures(code, text, ids)
    }
}

/// The failed ids in the words that clients look for.
fn ack_failures(code: Code, text: &str, ids: Vec<(String, AckFailure)>) -> Failure {
    let ids = ids
        .into_iter()
        .map(|(id, failure)| (id, failure.metadata().to_owned()));
    let metadata: HashMap<_, _> = ids.collect();
    let reason = "EXACTLY_ONCE_ACKID_FAILURE";
    let details = ErrorDetails::with_error_info(reason, DOMAIN, metadata);
    Failure(Box::new(Status::with_error_details(code, text, details)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_that_differ_are_a_failed_precondition_and_other_faults_are_invalid() {
        let code = |why| Status::from(Failure::from(why)).code();
        assert_eq!(code(InvalidPublish::MixedKeys), Code::FailedPrecondition);
        assert_eq!(code(InvalidPublish::NoMessages), Code::InvalidArgument);
    }
}

//! Acknowledge and ModifyAckDeadline.

use engine::control::Subscription;
use model::SubscriptionName;
use model::name::InvalidName;
use proto::pubsub::{AcknowledgeRequest, ModifyAckDeadlineRequest};
use router::Router;
use thiserror::Error;
use tokio::time::Instant;
use tonic::metadata::MetadataMap;

use super::ack_ids::{self, InvalidAckIds};
use super::exactly_once::{AckFailures, Asked};
use crate::deadline::timeout;
use crate::status::Failure;
use crate::trailers::ack_failures_bytes_max;

/// Why a call with ack ids is refused as a whole.
#[derive(Debug, PartialEq, Eq, Error)]
pub(crate) enum InvalidAcknowledge {
    #[error("{0}")]
    Name(#[from] InvalidName),
    #[error("{0}")]
    AckIds(#[from] InvalidAckIds),
}

/// What a call says of its caller.
pub(crate) struct Caller {
    /// When it stops waiting.
    until: Option<Instant>,
    failures_bytes_max: usize,
}

impl Caller {
    pub(crate) fn of(metadata: &MetadataMap) -> Self {
        Caller {
            until: timeout(metadata).map(|timeout| Instant::now() + timeout),
            failures_bytes_max: ack_failures_bytes_max(metadata),
        }
    }

    fn asked(&self, subscription: &Subscription) -> Asked {
        Asked {
            exactly_once: subscription.settings.exactly_once,
            failures_bytes_max: self.failures_bytes_max,
        }
    }
}

/// Acknowledges; on exactly-once subscriptions OK means that no message comes again.
pub(crate) async fn acknowledge(
    router: &Router,
    request: AcknowledgeRequest,
    caller: &Caller,
) -> Result<(), Failure> {
    let name = check(&request.subscription, &request.ack_ids, &request)?;
    let subscription = router.subscription(&name).await?;
    let (places, own) = ack_ids::own(&request.ack_ids, subscription.incarnation, &router.secret());
    let replies = router.acknowledge(&name, own, caller.until).await?;
    let replies = ack_ids::in_order(request.ack_ids.len(), &places, &replies);
    let asked = caller.asked(&subscription);
    Ok(AckFailures::of_acks(request.ack_ids, &replies, &asked)?)
}

/// Lets leases end later, or at once.
pub(crate) async fn modify_ack_deadline(
    router: &Router,
    request: ModifyAckDeadlineRequest,
    caller: &Caller,
) -> Result<(), Failure> {
    let deadline = ack_ids::deadline(request.ack_deadline_seconds);
    let deadline = deadline.map_err(InvalidAcknowledge::from)?;
    let name = check(&request.subscription, &request.ack_ids, &request)?;
    let subscription = router.subscription(&name).await?;
    let (places, own) = ack_ids::own(&request.ack_ids, subscription.incarnation, &router.secret());
    let own = own.into_iter().map(|id| (id, deadline)).collect();
    let replies = router.modify_deadline(&name, own, caller.until).await?;
    let replies = ack_ids::in_order(request.ack_ids.len(), &places, &replies);
    let asked = caller.asked(&subscription);
    Ok(AckFailures::of_deadlines(
        request.ack_ids,
        &replies,
        &asked,
    )?)
}

fn check(
    subscription: &str,
    ids: &[String],
    request: &impl prost::Message,
) -> Result<SubscriptionName, InvalidAcknowledge> {
    let name = SubscriptionName::parse(subscription)?;
    ack_ids::check_size(request, ids)?;
    Ok(name)
}

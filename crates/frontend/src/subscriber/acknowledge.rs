//! Acknowledge and ModifyAckDeadline.

use std::time::Duration;

use model::SubscriptionName;
use model::name::InvalidName;
use proto::pubsub::{AcknowledgeRequest, ModifyAckDeadlineRequest};
use router::Router;
use thiserror::Error;
use tokio::time::Instant;

use super::ack_ids::{self, InvalidAckIds};
use super::exactly_once::AckFailures;
use crate::status::Failure;

/// Why a call with ack ids is refused as a whole.
#[derive(Debug, PartialEq, Eq, Error)]
pub(crate) enum InvalidAcknowledge {
    #[error("{0}")]
    Name(#[from] InvalidName),
    #[error("{0}")]
    AckIds(#[from] InvalidAckIds),
}

/// Acknowledges; on exactly-once subscriptions OK means that no message comes again.
pub(crate) async fn acknowledge(
    router: &Router,
    request: AcknowledgeRequest,
    timeout: Option<Duration>,
) -> Result<(), Failure> {
    let (name, ids) = check(router, &request.subscription, &request.ack_ids, &request)?;
    let replies = router.acknowledge(&name, ids, until(timeout)).await?;
    Ok(AckFailures::of_acks(request.ack_ids, &replies)?)
}

/// Lets leases end later, or at once.
pub(crate) async fn modify_ack_deadline(
    router: &Router,
    request: ModifyAckDeadlineRequest,
    timeout: Option<Duration>,
) -> Result<(), Failure> {
    let deadline = ack_ids::deadline(request.ack_deadline_seconds);
    let deadline = deadline.map_err(InvalidAcknowledge::from)?;
    let (name, ids) = check(router, &request.subscription, &request.ack_ids, &request)?;
    let ids = ids.into_iter().map(|id| (id, deadline)).collect();
    let replies = router.modify_deadline(&name, ids, until(timeout)).await?;
    Ok(AckFailures::of_deadlines(request.ack_ids, &replies)?)
}

/// When the caller stops waiting.
fn until(timeout: Option<Duration>) -> Option<Instant> {
    timeout.map(|timeout| Instant::now() + timeout)
}

fn check(
    router: &Router,
    subscription: &str,
    ids: &[String],
    request: &impl prost::Message,
) -> Result<(SubscriptionName, Vec<model::AckId>), InvalidAcknowledge> {
    let name = SubscriptionName::parse(subscription)?;
    ack_ids::check_size(request, ids)?;
    Ok((name, ack_ids::decode(ids, &router.secret())?))
}

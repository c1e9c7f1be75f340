//! Publish: from the wire to the disks.

use std::time::Duration;

use model::TopicName;
use model::run::RunPayload;
use proto::pubsub::{PublishRequest, PublishResponse};
use router::Router;
use tokio::time::Instant;

use super::check::{InvalidPublish, check};
use crate::status::Failure;

/// Stores the messages of one request, all or none. OK means that they are on the disks of a
/// majority.
pub(crate) async fn publish(
    router: &Router,
    request: PublishRequest,
    timeout: Option<Duration>,
) -> Result<PublishResponse, Failure> {
    let topic = TopicName::parse(&request.topic).map_err(InvalidPublish::from)?;
    let ordering_key = check(&request)?;
    let payload = RunPayload::new(&request.messages);
    let deadline = timeout.map(|timeout| Instant::now() + timeout);
    let first = router
        .publish(&topic, &ordering_key, payload, deadline)
        .await?;
    let ids = 0..request.messages.len() as u32;
    Ok(PublishResponse {
        message_ids: ids.map(|at| first.plus(at).to_string()).collect(),
    })
}

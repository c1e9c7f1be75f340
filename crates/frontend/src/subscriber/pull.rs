//! Pull: one batch, for a caller who waits.

use std::time::Duration;

use bytes::Bytes;
use engine::dispatch::Credit;
use model::SubscriptionName;
use model::limits::{PULL_MESSAGES_MAX, PULL_WAIT_MARGIN, PULL_WAIT_MAX, RESPONSE_BYTES_MAX};
use model::name::InvalidName;
use proto::pubsub::{PullRequest, PullResponse};
use router::session::News;
use router::{Open, Router};
use thiserror::Error;
use tokio::time::{Instant, timeout_at};

use super::response::batches;
use crate::Shutdown;
use crate::status::{Failure, Unavailable};

/// Why a Pull is refused.
#[derive(Debug, PartialEq, Eq, Error)]
pub(crate) enum InvalidPull {
    #[error("{0}")]
    Name(#[from] InvalidName),
    #[error("max_messages is {0}: it must be positive.")]
    MaxMessages(i32),
}

/// How long `return_immediately` looks: long enough for the leaders to say what they have.
const IMMEDIATELY: Duration = Duration::from_millis(200);

/// Waits for the first messages, and answers with them; with nothing when the wait is over, before
/// the caller's own deadline.
///
/// A caller that goes away drops this future: the session then closes, and gives back what was
/// delivered and not read.
pub(crate) async fn pull(
    router: &Router,
    request: &PullRequest,
    deadline: Option<Duration>,
    mut shutdown: Shutdown,
) -> Result<PullResponse, Failure> {
    let name = SubscriptionName::parse(&request.subscription).map_err(InvalidPull::from)?;
    let messages = match u32::try_from(request.max_messages) {
        Ok(messages) if messages > 0 => messages.min(PULL_MESSAGES_MAX as u32),
        _ => return Err(InvalidPull::MaxMessages(request.max_messages).into()),
    };
    let limit = Credit {
        messages,
        bytes: RESPONSE_BYTES_MAX as u64,
    };
    let until = Instant::now() + wait(request, deadline);
    let (mut session, _) = router.open(&name, Open::pull(limit)).await?;
    loop {
        let news = tokio::select! {
            biased;
            news = timeout_at(until, session.next()) => news,
            // Nothing has come yet, and the next node may have something.
            () = shutdown.begun() => return Err(Unavailable::Draining.into()),
        };
        match news {
            Ok(News::Deliveries(deliveries)) => {
                let mut batches = batches(&router.secret(), &deliveries).into_iter();
                let first = batches.next().unwrap_or_default();
                // One response has room for these only; the others go back at once.
                batches.for_each(|batch| session.return_unread(&batch.acks));
                return Ok(response(first.messages));
            }
            Ok(News::Properties { .. }) => {}
            Ok(News::Ended) => return Err(router.why_ended(&name).await.into()),
            Err(_elapsed) => return Ok(response(Vec::new())),
        }
    }
}

/// How long a Pull waits for its first message.
fn wait(request: &PullRequest, deadline: Option<Duration>) -> Duration {
    #[allow(deprecated, reason = "old clients still set it")]
    if request.return_immediately {
        return IMMEDIATELY;
    }
    match deadline {
        Some(deadline) => deadline.saturating_sub(margin(deadline)).min(PULL_WAIT_MAX),
        None => PULL_WAIT_MAX,
    }
}

/// What is left of a caller's deadline for the answer: of a short one a part.
fn margin(deadline: Duration) -> Duration {
    match model::sabotage!("pull-waits-too-long") {
        true => Duration::ZERO,
        false => PULL_WAIT_MARGIN.min(deadline / 4),
    }
}

fn response(received_messages: Vec<Bytes>) -> PullResponse {
    PullResponse { received_messages }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wait_ends_before_the_callers_deadline() {
        let request = PullRequest::default();
        let waited = |millis| wait(&request, Some(Duration::from_millis(millis))).as_millis();
        assert_eq!(
            [200, 1_000, 5_000, 90_000].map(waited),
            [150, 750, 4_000, 20_000]
        );
        assert_eq!(wait(&request, None), PULL_WAIT_MAX);
    }
}

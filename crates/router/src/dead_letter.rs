//! Dead letters on their way to their topic.
//!
//! A shard hands over a message that failed too often; it is published like any other, and only
//! then settled where it came from. So a crash in between publishes it twice, never not at all.

use engine::dispatch::Forwarded;
use futures::StreamExt;
use futures::stream::FuturesUnordered;
use model::run::RunPayload;
use replica::shard::ForwardRequest;
use tokio::sync::mpsc;

use crate::{PublishError, Router};

/// Dead letters on their way at once, over all subscriptions of this node's shards.
const FORWARDS_MAX: usize = 256;

/// Publishes each dead letter and tells its shard, until no shard is left to ask.
pub(crate) async fn forward_all(router: Router, mut requests: mpsc::Receiver<ForwardRequest>) {
    let mut under_way = FuturesUnordered::new();
    let mut open = true;
    while open || !under_way.is_empty() {
        tokio::select! {
            biased;
            Some(()) = under_way.next() => {}
            request = requests.recv(), if open && under_way.len() < FORWARDS_MAX => match request {
                Some(request) => under_way.push(forward(&router, request)),
                None => open = false,
            },
        }
    }
}

async fn forward(router: &Router, request: ForwardRequest) {
    let payload = RunPayload::new(std::slice::from_ref(&request.message));
    let published = router
        .publish(&request.topic, &request.ordering_key, payload, None)
        .await;
    let result = match published {
        Ok(_) => Forwarded::Stored,
        // Where it may not go it stays, as where its topic is gone.
        Err(PublishError::NotFound(_) | PublishError::NotInTransit(_)) => Forwarded::NoTopic,
        Err(
            PublishError::Shard(_)
            | PublishError::NoRoute(_)
            | PublishError::Misplaced(_)
            | PublishError::TooLargeToMove(_)
            | PublishError::Fault(_),
        ) => Forwarded::Unknown,
    };
    // The shard's leader may have changed: the next one hands the message over again.
    let _ = request.answer.send(result);
}

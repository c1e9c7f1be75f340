//! Acks that share requests, as the official clients send them.

use std::sync::Arc;
use std::time::Duration;

use proto::pubsub::AcknowledgeRequest;
use proto::pubsub::subscriber_client::SubscriberClient;
use tokio::sync::mpsc;
use tokio::task::{JoinError, JoinSet};
use tokio::time::{Instant, timeout_at};
use tonic::Code;
use tonic::transport::Channel;

use super::consumer::Consuming;
use crate::cli::session::is_passing;

/// Acks of one request.
const REQUEST_ACKS_MAX: usize = 1_000;
/// Requests of one stream that are on their way at once: where an ack has to reach another region,
/// one after the other would say how far that is.
const REQUESTS_MAX: usize = 8;
/// The wait before acks that failed are tried again.
const RETRY: Duration = Duration::from_millis(50);

/// The ack of one message.
pub(crate) struct Ack {
    /// The ack id.
    pub(crate) id: String,
    /// The number of the message.
    pub(crate) number: u64,
}

/// Sends what is waiting, a few requests at once, until the other end is gone.
pub(crate) async fn work(
    consuming: Arc<Consuming>,
    client: SubscriberClient<Channel>,
    mut waiting: mpsc::Receiver<Vec<Ack>>,
) {
    let mut under_way = JoinSet::new();
    while let Some(first) = waiting.recv().await {
        let mut acks = first;
        let deadline = Instant::now() + consuming.ack_wait;
        while acks.len() < REQUEST_ACKS_MAX
            && let Ok(Some(more)) = timeout_at(deadline, waiting.recv()).await
        {
            acks.extend(more);
        }
        while !acks.is_empty() {
            let rest = acks.split_off(acks.len().min(REQUEST_ACKS_MAX));
            if under_way.len() == REQUESTS_MAX {
                answered(under_way.join_next().await);
            }
            under_way.spawn(send(Arc::clone(&consuming), client.clone(), acks));
            acks = rest;
        }
    }
    while let ended @ Some(_) = under_way.join_next().await {
        answered(ended);
    }
}

/// A request is answered; its panic goes on here.
fn answered(ended: Option<Result<(), JoinError>>) {
    if let Some(Err(broken)) = ended {
        std::panic::resume_unwind(broken.into_panic());
    }
}

/// Sends one request until it is answered for good. One that is aborted counted as far as it could:
/// the rest is being sent again, perhaps only when acks behind this request have made room for it.
async fn send(consuming: Arc<Consuming>, mut client: SubscriberClient<Channel>, acks: Vec<Ack>) {
    let (ack_ids, numbers): (Vec<_>, Vec<_>) =
        acks.into_iter().map(|ack| (ack.id, ack.number)).unzip();
    let subscription = consuming.subscription.clone();
    let request = AcknowledgeRequest {
        subscription,
        ack_ids,
    };
    loop {
        match client.acknowledge(request.clone()).await {
            Ok(_) => return consuming.account.acknowledge(&numbers),
            Err(status) if is_retried(status.code()) && !consuming.is_done() => {
                consuming.retry_acks(&status);
                tokio::time::sleep(RETRY).await;
            }
            Err(_) => return consuming.refuse_acks(numbers.len()),
        }
    }
}

fn is_retried(code: Code) -> bool {
    is_passing(code) && code != Code::Aborted
}

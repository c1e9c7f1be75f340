//! Dead letters on their way out.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use engine::dispatch::{ForwardId, Forwarded};
use model::TopicName;
use tokio::sync::oneshot;

/// A dead letter that must be published to another topic.
#[derive(Debug)]
pub struct ForwardRequest {
    /// Where to.
    pub topic: TopicName,
    /// The encoded message, with the attributes that say where it came from.
    pub message: Bytes,
    /// Its ordering key; empty for none.
    pub ordering_key: String,
    /// To be answered when the message is stored, or can't be. Dropped without an answer, it
    /// counts as [`Forwarded::Unknown`].
    pub answer: oneshot::Sender<Forwarded>,
}

/// A dead letter whose answer is awaited.
pub(super) struct Dispatched {
    forward: ForwardId,
    answer: oneshot::Receiver<Forwarded>,
}

impl Dispatched {
    pub(super) fn new(forward: ForwardId, answer: oneshot::Receiver<Forwarded>) -> Self {
        Dispatched { forward, answer }
    }
}

impl Future for Dispatched {
    type Output = (ForwardId, Forwarded);

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let answered = Pin::new(&mut self.answer).poll(context);
        answered.map(|answer| (self.forward, answer.unwrap_or(Forwarded::Unknown)))
    }
}

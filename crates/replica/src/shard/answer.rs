//! Where the answer to a call goes: to a caller on this node, or back over a link.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use model::ShardNumber;
use tokio::sync::{mpsc, oneshot};

use super::link::{CallId, Reply, Returned};

/// The caller of one call. Dropped without an answer, the call's outcome is unknown.
#[derive(Debug)]
pub(super) struct Answer<T> {
    to: Option<To<T>>,
}

#[derive(Debug)]
enum To<T> {
    Here(oneshot::Sender<T>),
    Link(LinkAnswer),
}

/// A caller on another node.
#[derive(Debug)]
pub(super) struct LinkAnswer {
    pub(super) call: CallId,
    pub(super) shard: ShardNumber,
    pub(super) replies: mpsc::UnboundedSender<Reply>,
    /// Whether the caller has gone away.
    pub(super) cancelled: Arc<AtomicBool>,
}

impl<T> Answer<T> {
    /// The caller is on this node.
    pub(super) fn here(sender: oneshot::Sender<T>) -> Self {
        Answer {
            to: Some(To::Here(sender)),
        }
    }

    /// The caller is on another node.
    pub(super) fn link(answer: LinkAnswer) -> Self {
        Answer {
            to: Some(To::Link(answer)),
        }
    }

    /// Whether nobody waits any more.
    pub(super) fn is_closed(&self) -> bool {
        match &self.to {
            Some(To::Here(sender)) => sender.is_closed(),
            Some(To::Link(answer)) => answer.is_closed(),
            None => true,
        }
    }
}

impl<T> Answer<T>
where
    T: Into<Returned>,
{
    /// Answers. A caller that has gone away hears nothing.
    pub(super) fn send(mut self, answer: T) {
        match self.to.take() {
            Some(To::Here(sender)) => {
                let _ = sender.send(answer);
            }
            Some(To::Link(link)) => link.send(answer.into()),
            None => {}
        }
    }
}

impl<T> Drop for Answer<T> {
    fn drop(&mut self) {
        // A caller here sees its channel closed.
        if let Some(To::Link(link)) = self.to.take() {
            link.send(Returned::Unknown);
        }
    }
}

impl LinkAnswer {
    fn is_closed(&self) -> bool {
        self.replies.is_closed() || self.cancelled.load(Ordering::Relaxed)
    }

    fn send(self, what: Returned) {
        let (call, shard) = (self.call, self.shard);
        let _ = self.replies.send(Reply::Answer { call, shard, what });
    }
}

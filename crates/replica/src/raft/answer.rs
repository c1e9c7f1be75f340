//! How the outcome of a proposal comes back.

use openraft::raft::responder::Responder;
use tokio::sync::oneshot;

use super::Types;

/// The sending half of one answer. A receiver that is gone is no news: its leader was dropped.
pub(crate) struct Answer<T>(oneshot::Sender<T>);

impl<T> Answer<T> {
    /// An answer, and where it arrives. The receiver fails when Raft stops without answering.
    pub(super) fn new() -> (Self, oneshot::Receiver<T>) {
        let (sender, receiver) = oneshot::channel();
        (Answer(sender), receiver)
    }
}

impl<T: Send + 'static> Responder<Types, T> for Answer<T> {
    fn on_complete(self, result: T) {
        let _ = self.0.send(result);
    }
}

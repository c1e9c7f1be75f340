//! The client's side of a StreamingPull.

use std::time::Duration;

use proto::pubsub::StreamingPullRequest;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::Code;

/// A node closes streams of which it hears nothing for a while; clients of Google say this often
/// that they are there.
const HEARTBEAT: Duration = Duration::from_secs(30);
/// The wait before a stream that ended is opened again.
pub(crate) const REOPEN: Duration = Duration::from_millis(500);

/// What a client says on its stream: its first request, then that it is still there.
pub(crate) fn requests(first: StreamingPullRequest) -> ReceiverStream<StreamingPullRequest> {
    let (sender, receiver) = mpsc::channel(1);
    tokio::spawn(async move {
        let mut next = first;
        let mut ticks = tokio::time::interval(HEARTBEAT);
        loop {
            ticks.tick().await;
            if sender.send(std::mem::take(&mut next)).await.is_err() {
                return;
            }
        }
    });
    ReceiverStream::new(receiver)
}

/// Whether a call may succeed when made again: the node is busy, restarts, or the connection broke,
/// which shows as `Unknown`.
pub(crate) fn is_passing(code: Code) -> bool {
    match code {
        Code::Unavailable
        | Code::Unknown
        | Code::ResourceExhausted
        | Code::Aborted
        | Code::Internal
        | Code::DeadlineExceeded
        | Code::Cancelled => true,
        Code::Ok
        | Code::InvalidArgument
        | Code::NotFound
        | Code::AlreadyExists
        | Code::PermissionDenied
        | Code::FailedPrecondition
        | Code::OutOfRange
        | Code::Unimplemented
        | Code::DataLoss
        | Code::Unauthenticated => false,
    }
}

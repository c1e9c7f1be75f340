//! The handle to a shard whose leader is on this node.

use std::time::Duration;

use engine::dispatch::{AckReply, Credit, ModifyReply, OpenSession, Refused};
use engine::shard;
use model::run::RunPayload;
use model::{AckId, Incarnation, KeyHash, MessageId, SessionId, ShardNumber};
use thiserror::Error;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::Instant;

use super::request::Request;
use super::session::SessionEvent;
use crate::Unavailable;

/// A shard on this node. Cheap to clone.
///
/// Calls wait while [`model::limits::SHARD_WAITING_REQUESTS_MAX`] others do. A publish whose future
/// is dropped before the leader took it up has no effect.
#[derive(Clone, Debug)]
pub struct ShardClient {
    shard: ShardNumber,
    requests: mpsc::Sender<Request>,
    serving: watch::Receiver<bool>,
}

/// Why a publish has no message ids.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum PublishError {
    /// *Refused*: nothing was stored.
    #[error("publish refused: {0:?}")]
    Refused(Refused),
    /// *Retry* or *unknown*.
    #[error(transparent)]
    Unavailable(#[from] Unavailable),
}

/// A change of the catalogue on its way into a shard's log.
pub(crate) struct CatalogueLogged {
    answered: oneshot::Receiver<Result<(), Unavailable>>,
    serving: watch::Receiver<bool>,
}

impl CatalogueLogged {
    /// Waits until the change stands in the log ahead of any later publish.
    ///
    /// # Errors
    /// [`Unavailable`] when the node shuts down.
    pub(crate) async fn wait(mut self) -> Result<(), Unavailable> {
        if let Ok(Ok(())) = self.answered.await {
            return Ok(());
        }
        // A leadership that does not serve any more when it refuses is followed by one that
        // compares its log with the catalogue before it serves.
        match self.serving.wait_for(|serving| *serving).await {
            Ok(_) => Ok(()),
            Err(_) => Err(Unavailable::UNKNOWN),
        }
    }
}

impl ShardClient {
    pub(super) fn new(
        shard: ShardNumber,
        requests: mpsc::Sender<Request>,
        serving: watch::Receiver<bool>,
    ) -> Self {
        ShardClient {
            shard,
            requests,
            serving,
        }
    }

    /// The shard's number.
    #[must_use]
    pub fn shard(&self) -> ShardNumber {
        self.shard
    }

    /// Waits until the shard's leader serves on this node. It may have stopped again by the time
    /// of the next call.
    ///
    /// # Errors
    /// [`Unavailable`] when the node shuts down.
    pub async fn serving(&self) -> Result<(), Unavailable> {
        let mut serving = self.serving.clone();
        match serving.wait_for(|serving| *serving).await {
            Ok(_) => Ok(()),
            Err(_) => Err(Unavailable::NOT_DONE),
        }
    }

    /// Stores messages of one strand and answers the id of the first; the others count up.
    ///
    /// # Errors
    /// [`PublishError`]. A publish whose `deadline` passes before it is proposed is refused, so
    /// that it never lands behind its caller's next attempt.
    pub async fn publish(
        &self,
        topic: Incarnation,
        strand: KeyHash,
        keyed: bool,
        payload: RunPayload,
        deadline: Option<Instant>,
    ) -> Result<MessageId, PublishError> {
        let (answer, answered) = oneshot::channel();
        let request = Request::Publish {
            topic,
            strand,
            keyed,
            payload,
            deadline,
            answer,
        };
        self.ask(request, answered).await?
    }

    /// Acknowledges deliveries of one subscription and of this shard; one reply for each id.
    ///
    /// # Errors
    /// [`Unavailable`].
    pub async fn acknowledge(
        &self,
        subscription: Incarnation,
        ids: Vec<AckId>,
    ) -> Result<Vec<AckReply>, Unavailable> {
        let (answer, answered) = oneshot::channel();
        let request = Request::Acknowledge {
            subscription,
            ids,
            answer,
        };
        self.ask(request, answered).await?
    }

    /// Lets leases of one subscription end after the given times from now, zero being a nack; one
    /// reply for each id.
    ///
    /// # Errors
    /// [`Unavailable`].
    pub async fn modify_deadline(
        &self,
        subscription: Incarnation,
        ids: Vec<(AckId, Duration)>,
    ) -> Result<Vec<ModifyReply>, Unavailable> {
        let (answer, answered) = oneshot::channel();
        let request = Request::ModifyDeadline {
            subscription,
            ids,
            answer,
        };
        self.ask(request, answered).await?
    }

    /// Opens a pull. What happens to it arrives as `events`,
    /// [`super::SessionChange::Ended`] last.
    pub async fn open_session(
        &self,
        open: OpenSession,
        events: mpsc::UnboundedSender<SessionEvent>,
    ) {
        let request = Request::OpenSession { open, events };
        if let Err(mpsc::error::SendError(request)) = self.requests.send(request).await {
            request.refuse(self.shard);
        }
    }

    /// Answers an offer: so much may be sent to the session.
    pub async fn grant(&self, session: SessionId, credit: Credit) {
        self.tell(Request::Grant { session, credit }).await;
    }

    /// Changes the deadline of the session's later deliveries.
    pub async fn session_deadline(&self, session: SessionId, ack_deadline: Duration) {
        let request = Request::SessionDeadline {
            session,
            ack_deadline,
        };
        self.tell(request).await;
    }

    /// Ends a session. `returned` are deliveries that never reached the client.
    pub async fn close_session(&self, session: SessionId, returned: Vec<AckId>) {
        self.tell(Request::CloseSession { session, returned }).await;
    }

    /// Puts a change of the catalogue (Attach, Detach or CloseTopic) into the shard's log, ahead of
    /// any publish that is called after this returns. The answer comes when it is applied.
    ///
    /// Where the shard has no leader now, the next one finds the change in the catalogue itself.
    pub(crate) async fn log_catalogue(&self, command: shard::Command) -> CatalogueLogged {
        let (answer, answered) = oneshot::channel();
        // A request that can't be sent drops its answer, which is seen below.
        let _ = self
            .requests
            .send(Request::Catalogue { command, answer })
            .await;
        CatalogueLogged {
            answered,
            serving: self.serving.clone(),
        }
    }

    async fn ask<T>(
        &self,
        request: Request,
        answered: oneshot::Receiver<T>,
    ) -> Result<T, Unavailable> {
        let sent = self.requests.send(request).await;
        sent.map_err(|_| Unavailable::NOT_DONE)?;
        answered.await.map_err(|_| Unavailable::UNKNOWN)
    }

    /// A leader that is gone has ended its sessions already: there is nobody to be told.
    async fn tell(&self, request: Request) {
        let _ = self.requests.send(request).await;
    }
}

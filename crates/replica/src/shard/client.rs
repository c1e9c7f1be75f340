//! The handle to a shard, wherever its leader is.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use engine::dispatch::{AckReply, ModifyReply, MoveReply, OpenSession, Refused, TransferMessage};
use engine::table::strand::StrandKey;
use model::limits::{CALL_WAIT_MARGIN, CALL_WAIT_MAX};
use model::run::RunPayload;
use model::{AckId, Epoch, Incarnation, KeyHash, MessageId, ShardNumber};
use thiserror::Error;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, timeout_at};

use super::answer::Answer;
use super::request::Request;
use super::session::{SessionEvent, ShardSession};
use super::way::{Target, Way};
use crate::Unavailable;

/// A shard. Cheap to clone.
///
/// A call goes to the shard's leader, on this node or another. While nobody leads it waits, and
/// one that was certainly not done is sent again, until shortly before its deadline or for
/// [`CALL_WAIT_MAX`]; so it never hangs. Calls wait too while
/// [`model::limits::SHARD_WAITING_REQUESTS_MAX`] others do. A publish whose future is dropped
/// before the leader took it up has no effect.
#[derive(Clone, Debug)]
pub struct ShardClient {
    way: Arc<Way>,
}

/// Why a publish has no message ids.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum PublishError {
    /// *Refused*: nothing was stored.
    #[error("publish refused: {0:?}")]
    Refused(Refused),
    /// *Retry* elsewhere: nothing was stored, because another shard owns the key.
    #[error("the key is pinned to shard {shard} at epoch {epoch}")]
    Moved {
        /// The owner.
        shard: ShardNumber,
        /// The epoch of the pin that says so.
        epoch: Epoch,
    },
    /// *Retry* or *unknown*.
    #[error(transparent)]
    Unavailable(#[from] Unavailable),
}

impl ShardClient {
    pub(super) fn new(way: Arc<Way>) -> Self {
        ShardClient { way }
    }

    pub(super) fn way(&self) -> &Arc<Way> {
        &self.way
    }

    /// The shard's number.
    #[must_use]
    pub fn shard(&self) -> ShardNumber {
        self.way.shard()
    }

    /// Waits until the shard's leader serves on this node, or another node is known to lead. It
    /// may have stopped again by the time of the next call.
    ///
    /// # Errors
    /// [`Unavailable`] when the node shuts down.
    pub async fn serving(&self) -> Result<(), Unavailable> {
        self.way.leads().await.ok_or(Unavailable::NOT_DONE)
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
        let deadline = given_up_at(deadline);
        self.call(deadline, |answer| Request::Publish {
            topic,
            strand,
            keyed,
            payload: payload.clone(),
            deadline,
            answer,
        })
        .await
    }

    /// Acknowledges deliveries of one subscription and of this shard; one reply for each id.
    ///
    /// # Errors
    /// [`Unavailable`].
    pub async fn acknowledge(
        &self,
        subscription: Incarnation,
        ids: Vec<AckId>,
        deadline: Option<Instant>,
    ) -> Result<Vec<AckReply>, Unavailable> {
        self.call(given_up_at(deadline), |answer| Request::Acknowledge {
            subscription,
            ids: ids.clone(),
            answer,
        })
        .await
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
        deadline: Option<Instant>,
    ) -> Result<Vec<ModifyReply>, Unavailable> {
        self.call(given_up_at(deadline), |answer| Request::ModifyDeadline {
            subscription,
            ids: ids.clone(),
            answer,
        })
        .await
    }

    /// Has a key of this shard live in another one; answers when it does, or when it stays after
    /// all. Publishes and acks of the key wait meanwhile.
    ///
    /// # Errors
    /// [`Unavailable`]; the key may move all the same if that is unknown.
    pub async fn move_key(
        &self,
        key: StrandKey,
        to: ShardNumber,
        deadline: Option<Instant>,
    ) -> Result<MoveReply, Unavailable> {
        let deadline = given_up_at(deadline);
        self.call(deadline, |answer| Request::MoveKey { key, to, answer })
            .await
    }

    /// Tells the shard's leader something about a key, if it is found within a time. It may get lost.
    pub(crate) async fn tell(self, message: TransferMessage, within: Duration) {
        let told = self.call(Instant::now() + within, |answer| {
            let message = message.clone();
            Request::Tell { message, answer }
        });
        // Whoever says it says it again until what it is about has happened.
        let _ = told.await;
    }

    /// Waits until this node hears of another leader of the shard, but not for longer than `within`.
    /// Answers whether it has.
    pub async fn leader_changes_within(&self, within: Duration) -> bool {
        self.way.changes_within(within).await
    }

    /// Opens a pull at the shard's leader, as soon as there is one. What happens to it arrives as
    /// `events`, [`super::SessionChange::Ended`] last. `attempts` says how many before this one found
    /// no leader.
    pub async fn open_session(
        &self,
        open: OpenSession,
        events: mpsc::UnboundedSender<SessionEvent>,
        attempts: u32,
    ) -> ShardSession {
        let (shard, session) = (self.shard(), open.session);
        // Who was asked twice and did not lead may know no better: then somebody else is asked first.
        let mut search = self.way.search_behind(attempts as usize / 2);
        loop {
            let request = Request::OpenSession {
                open: open.clone(),
                events: events.clone(),
            };
            let Some(target) = search.next().await else {
                request.refuse(shard);
                return ShardSession::over(shard, session);
            };
            if target.send(shard, request).await.is_ok() {
                return ShardSession::new(shard, session, target);
            }
        }
    }

    /// Makes a call until it is answered with more than that it was not done.
    async fn call<T, E>(
        &self,
        deadline: Instant,
        request: impl Fn(Answer<Result<T, E>>) -> Request,
    ) -> Result<T, E>
    where
        E: From<Unavailable> + Copy,
        Option<Unavailable>: From<E>,
    {
        let is_open = AtomicBool::new(false);
        let attempts = async {
            let mut search = self.way.search();
            while let Some(target) = search.next().await {
                is_open.store(true, Ordering::Relaxed);
                let answer = self.attempt(&target, &request).await;
                match answer.as_ref().err().map(|why| Option::from(*why)) {
                    Some(Some(Unavailable { unknown: false })) => {
                        is_open.store(false, Ordering::Relaxed);
                    }
                    _ => {
                        search.found(&target);
                        return answer;
                    }
                }
            }
            Err(Unavailable::NOT_DONE.into())
        };
        match timeout_at(deadline, attempts).await {
            Ok(answer) => answer,
            // Where nobody is being asked, nobody has done it.
            Err(_) => {
                let unknown = is_open.load(Ordering::Relaxed);
                Err(Unavailable { unknown }.into())
            }
        }
    }

    /// Makes a call once.
    async fn attempt<T, E>(
        &self,
        target: &Target,
        request: impl Fn(Answer<Result<T, E>>) -> Request,
    ) -> Result<T, E>
    where
        E: From<Unavailable>,
    {
        let (answer, answered) = oneshot::channel();
        let sent = target.send(self.shard(), request(Answer::here(answer)));
        let called = sent.await.map_err(|_| Unavailable::NOT_DONE)?;
        let answer = answered.await;
        if let Some(called) = called {
            called.answered();
        }
        answer.unwrap_or(Err(Unavailable::UNKNOWN.into()))
    }
}

/// When a call is given up: so long before its caller's deadline that the answer arrives. Short
/// deadlines leave a part of themselves as margin.
fn given_up_at(deadline: Option<Instant>) -> Instant {
    let now = Instant::now();
    match deadline {
        Some(deadline) => {
            let left = deadline.saturating_duration_since(now);
            now + (left - CALL_WAIT_MARGIN.min(left / 8))
        }
        None => now + CALL_WAIT_MAX,
    }
}

impl From<PublishError> for Option<Unavailable> {
    fn from(why: PublishError) -> Self {
        match why {
            PublishError::Refused(_) | PublishError::Moved { .. } => None,
            PublishError::Unavailable(why) => Some(why),
        }
    }
}

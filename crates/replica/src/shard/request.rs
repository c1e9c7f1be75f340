//! A call on its way to the shard's task.

use std::time::Duration;

use engine::dispatch::{AckReply, Credit, Ended, ModifyReply, OpenSession};
use engine::shard;
use model::run::RunPayload;
use model::{AckId, Incarnation, KeyHash, MessageId, SessionId, ShardNumber};
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

use super::client::PublishError;
use super::session::{SessionChange, SessionEvent};
use crate::Unavailable;

/// Where the answer to a publish goes.
pub(super) type PublishAnswer = oneshot::Sender<Result<MessageId, PublishError>>;
/// Where any other answer goes.
pub(super) type Answer<T> = oneshot::Sender<Result<T, Unavailable>>;
/// Where a session listens.
///
/// It is not bounded by itself because its volume is: at most one offer and one delivery of a
/// shard are under way, a delivery is at most what the session granted, each release returns
/// some of what was granted, and the rest happens once or with a change of the catalogue.
pub(super) type SessionEvents = mpsc::UnboundedSender<SessionEvent>;

/// One call of [`super::ShardClient`]; the fields are its arguments.
#[derive(Debug)]
pub(super) enum Request {
    Publish {
        topic: Incarnation,
        strand: KeyHash,
        keyed: bool,
        payload: RunPayload,
        deadline: Option<Instant>,
        answer: PublishAnswer,
    },
    Acknowledge {
        subscription: Incarnation,
        ids: Vec<AckId>,
        answer: Answer<Vec<AckReply>>,
    },
    ModifyDeadline {
        subscription: Incarnation,
        ids: Vec<(AckId, Duration)>,
        answer: Answer<Vec<ModifyReply>>,
    },
    Catalogue {
        command: shard::Command,
        answer: Answer<()>,
    },
    OpenSession {
        open: OpenSession,
        events: SessionEvents,
    },
    Grant {
        session: SessionId,
        credit: Credit,
    },
    SessionDeadline {
        session: SessionId,
        ack_deadline: Duration,
    },
    CloseSession {
        session: SessionId,
        returned: Vec<AckId>,
    },
}

impl Request {
    /// Answers that no leader is here. Nothing was done.
    pub(super) fn refuse(self, shard: ShardNumber) {
        let unavailable = Unavailable::NOT_DONE;
        match self {
            Request::Publish { answer, .. } => {
                let _ = answer.send(Err(unavailable.into()));
            }
            Request::Acknowledge { answer, .. } => {
                let _ = answer.send(Err(unavailable));
            }
            Request::ModifyDeadline { answer, .. } => {
                let _ = answer.send(Err(unavailable));
            }
            Request::Catalogue { answer, .. } => {
                let _ = answer.send(Err(unavailable));
            }
            Request::OpenSession { events, .. } => {
                let why = Ended::Reopen;
                let what = SessionChange::Ended { why };
                let _ = events.send(SessionEvent { shard, what });
            }
            // These are about a session that ended with its leader.
            Request::Grant { .. }
            | Request::SessionDeadline { .. }
            | Request::CloseSession { .. } => {}
        }
    }
}

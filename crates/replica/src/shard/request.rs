//! A call on its way to the shard's task.

use std::time::Duration;

use engine::dispatch::{
    AckReply, Credit, Ended, ModifyReply, MoveReply, OpenSession, TransferMessage,
};
use engine::shard;
use engine::table::strand::StrandKey;
use model::run::RunPayload;
use model::{AckId, Incarnation, KeyHash, MessageId, SessionId, ShardNumber};
use serde::{Deserialize, Serialize};
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

use super::answer::Answer;
use super::client::PublishError;
use super::session::{SessionChange, SessionEvent};
use crate::Unavailable;

/// What a publish is answered with.
pub(super) type Published = Result<MessageId, PublishError>;
/// What acks are answered with.
pub(super) type Acknowledged = Result<Vec<AckReply>, Unavailable>;
/// What changes of deadlines are answered with.
pub(super) type Modified = Result<Vec<ModifyReply>, Unavailable>;
/// What the wish to move a key is answered with.
pub(super) type KeyMoved = Result<MoveReply, Unavailable>;
/// What the leader of another shard is answered that says something.
pub(super) type Told = Result<(), Unavailable>;
/// Where a session listens.
///
/// It is not bounded by itself because its volume is: at most one offer and one delivery of a
/// shard are under way, a delivery is at most what the session granted, each release returns
/// some of what was granted, and the rest happens once or with a change of the catalogue.
pub(super) type SessionEvents = mpsc::UnboundedSender<SessionEvent>;

/// One call of [`super::ShardClient`], of [`super::ShardSession`] or, those that only this node
/// makes, of [`super::LocalShard`] and of the called end of a link; the fields are its arguments.
#[derive(Debug)]
pub(super) enum Request {
    Publish {
        topic: Incarnation,
        strand: KeyHash,
        keyed: bool,
        payload: RunPayload,
        deadline: Instant,
        answer: Answer<Published>,
    },
    Acknowledge {
        subscription: Incarnation,
        ids: Vec<AckId>,
        answer: Answer<Acknowledged>,
    },
    ModifyDeadline {
        subscription: Incarnation,
        ids: Vec<(AckId, Duration)>,
        answer: Answer<Modified>,
    },
    Catalogue {
        command: shard::Command,
        answer: oneshot::Sender<()>,
    },
    /// To log whatever the catalogue has and the shard lacks.
    CompareCatalogue {
        answer: oneshot::Sender<()>,
    },
    /// An operator wants a key to live in another shard.
    MoveKey {
        key: StrandKey,
        to: ShardNumber,
        answer: Answer<KeyMoved>,
    },
    /// The leader of another shard says something about a key that moves. It may get lost: answered
    /// is that the leader has heard it, not what came of it.
    Tell {
        message: TransferMessage,
        answer: Answer<Told>,
    },
    OpenSession {
        open: OpenSession,
        events: SessionEvents,
    },
    Session {
        session: SessionId,
        say: Say,
    },
    /// The way to a session's frontend is lost; `returned` was not sent.
    LoseSession {
        session: SessionId,
        returned: Vec<AckId>,
    },
}

/// What an open session says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) enum Say {
    Grant { credit: Credit },
    Deadline { ack_deadline: Duration },
    Close { returned: Vec<AckId> },
}

impl Request {
    /// Whether it rests on what the catalogue says now.
    pub(super) fn needs_catalogue(&self) -> bool {
        matches!(
            self,
            Request::Publish { .. }
                | Request::Acknowledge { .. }
                | Request::ModifyDeadline { .. }
                | Request::OpenSession { .. }
        )
    }

    /// Whether somebody waits for an answer.
    pub(super) fn is_answered(&self) -> bool {
        !matches!(
            self,
            Request::OpenSession { .. } | Request::Session { .. } | Request::LoseSession { .. }
        )
    }

    /// Answers that no leader is here. Nothing was done.
    pub(super) fn refuse(self, shard: ShardNumber) {
        let unavailable = Unavailable::NOT_DONE;
        match self {
            Request::Publish { answer, .. } => answer.send(Err(unavailable.into())),
            Request::Acknowledge { answer, .. } => answer.send(Err(unavailable)),
            Request::ModifyDeadline { answer, .. } => answer.send(Err(unavailable)),
            Request::MoveKey { answer, .. } => answer.send(Err(unavailable)),
            Request::Tell { answer, .. } => answer.send(Err(unavailable)),
            Request::OpenSession { open, events } => {
                let session = open.session;
                let why = Ended::Reopen;
                let what = SessionChange::Ended { why };
                let _ = events.send(SessionEvent {
                    shard,
                    session,
                    what,
                });
            }
            // The next leader compares its log with the catalogue.
            Request::Catalogue { .. } | Request::CompareCatalogue { .. } => {}
            // A session that ended with its leader.
            Request::Session { .. } | Request::LoseSession { .. } => {}
        }
    }
}

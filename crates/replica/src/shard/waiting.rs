//! Who is to be answered: callers until their reply, sessions until they end.

use std::collections::BTreeMap;
use std::time::Duration;

use engine::dispatch::{
    AckReply, Ended, Input, ModifyReply, MoveReply, OpenSession, PublishReply, RequestId,
};
use model::{AckId, SessionId, ShardNumber};
use tokio::sync::oneshot;

use super::answer::Answer;
use super::client::PublishError;
use super::request::{Acknowledged, KeyMoved, Modified, Published, SessionEvents};
use super::session::{SessionChange, SessionEvent, unseen};
use crate::Unavailable;

/// A caller, by what it asked for.
pub(super) enum Caller {
    Publish(Answer<Published>),
    Acknowledge(Answer<Acknowledged>),
    ModifyDeadline(Answer<Modified>),
    MoveKey(Answer<KeyMoved>),
    Catalogue(oneshot::Sender<()>),
    /// The leadership itself, which brings its log up to the catalogue.
    Nobody,
}

/// The callers whose request was handed to the leader.
///
/// A caller may have gone away meanwhile; its answer then goes nowhere. And one whose answer is
/// dropped, because the leadership is over, hears that the outcome is unknown.
#[derive(Default)]
pub(super) struct Callers {
    next: u64,
    waiting: BTreeMap<RequestId, Caller>,
}

impl Callers {
    /// Notes a caller, and names its request.
    pub(super) fn add(&mut self, caller: Caller) -> RequestId {
        self.next += 1;
        let request = RequestId(self.next);
        self.waiting.insert(request, caller);
        request
    }

    /// Whether everyone was answered.
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Tells everyone that nothing was done. For those that an answer can't say that to, the next
    /// leader does what they wait for.
    pub(super) fn refuse(&mut self) {
        for caller in std::mem::take(&mut self.waiting).into_values() {
            match caller {
                Caller::Publish(answer) => answer.send(Err(Unavailable::NOT_DONE.into())),
                Caller::Acknowledge(answer) => answer.send(Err(Unavailable::NOT_DONE)),
                Caller::ModifyDeadline(answer) => answer.send(Err(Unavailable::NOT_DONE)),
                Caller::MoveKey(answer) => answer.send(Err(Unavailable::NOT_DONE)),
                Caller::Catalogue(_) | Caller::Nobody => {}
            }
        }
    }

    pub(super) fn published(&mut self, request: RequestId, reply: PublishReply) {
        if let Some(Caller::Publish(answer)) = self.waiting.remove(&request) {
            answer.send(match reply {
                PublishReply::Stored { first } => Ok(first),
                PublishReply::Moved { shard, epoch } => Err(PublishError::Moved { shard, epoch }),
                PublishReply::Refused(why) => Err(PublishError::Refused(why)),
            });
        }
    }

    pub(super) fn acknowledged(&mut self, request: RequestId, replies: Vec<AckReply>) {
        if let Some(Caller::Acknowledge(answer)) = self.waiting.remove(&request) {
            answer.send(Ok(replies));
        }
    }

    pub(super) fn modified(&mut self, request: RequestId, replies: Vec<ModifyReply>) {
        if let Some(Caller::ModifyDeadline(answer)) = self.waiting.remove(&request) {
            answer.send(Ok(replies));
        }
    }

    pub(super) fn key_moved(&mut self, request: RequestId, reply: MoveReply) {
        if let Some(Caller::MoveKey(answer)) = self.waiting.remove(&request) {
            answer.send(Ok(reply));
        }
    }

    pub(super) fn logged(&mut self, request: RequestId) {
        // `Nobody` goes without an answer.
        if let Some(Caller::Catalogue(answer)) = self.waiting.remove(&request) {
            let _ = answer.send(());
        }
    }
}

/// The sessions that are open in this shard.
pub(super) struct Sessions {
    shard: ShardNumber,
    /// How long a frontend that is well takes to open a session again, at most.
    back_within: Duration,
    open: BTreeMap<SessionId, SessionEvents>,
    /// The ends of sessions whose listener is gone, with the deliveries that it never saw.
    deserted: Vec<Input>,
}

impl Sessions {
    pub(super) fn new(shard: ShardNumber, back_within: Duration) -> Self {
        Sessions {
            shard,
            back_within,
            open: BTreeMap::new(),
            deserted: Vec::new(),
        }
    }

    pub(super) fn open(&mut self, open: &OpenSession, events: SessionEvents) {
        self.open.insert(open.session, events);
    }

    /// The session has ended by itself.
    pub(super) fn close(&mut self, session: SessionId) {
        self.open.remove(&session);
    }

    /// The way to a session is lost, as the leader hears it; `returned` was not sent.
    pub(super) fn lost(&mut self, session: SessionId, returned: Vec<AckId>) -> Input {
        self.close(session);
        Input::LoseSession {
            session,
            returned,
            back_within: self.back_within,
        }
    }

    /// Tells a session what happened. One that has ended hears nothing.
    pub(super) fn tell(&mut self, session: SessionId, what: SessionChange) {
        let ended = matches!(what, SessionChange::Ended { .. });
        let Some(events) = self.open.get(&session) else {
            return;
        };
        let shard = self.shard;
        let told = events.send(SessionEvent {
            shard,
            session,
            what,
        });
        if ended || told.is_err() {
            self.open.remove(&session);
        }
        if let (false, Err(unheard)) = (ended, told) {
            let returned = unseen(unheard.0.what);
            let lost = self.lost(session, returned);
            self.deserted.push(lost);
        }
    }

    /// Takes the ends of sessions whose listener went away without a word.
    pub(super) fn deserted(&mut self) -> Vec<Input> {
        if model::sabotage!("vanished-listener-keeps-deliveries") {
            return Vec::new();
        }
        std::mem::take(&mut self.deserted)
    }
}

impl Drop for Sessions {
    /// The leadership is over: the sessions may be opened again, here or elsewhere.
    fn drop(&mut self) {
        for (session, events) in &self.open {
            let why = Ended::Reopen;
            let what = SessionChange::Ended { why };
            let shard = self.shard;
            let session = *session;
            let _ = events.send(SessionEvent {
                shard,
                session,
                what,
            });
        }
    }
}

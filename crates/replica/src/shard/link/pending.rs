//! Who waits at the calling end of a link: callers for answers, sessions for events.

use std::collections::BTreeMap;

use engine::dispatch::Ended;
use model::{AckId, SessionId, ShardNumber};
use tokio::sync::OwnedSemaphorePermit;

use super::wire::{CallId, Returned};
use crate::Unavailable;
use crate::shard::PublishError;
use crate::shard::answer::Answer;
use crate::shard::request::{Acknowledged, KeyMoved, Modified, Published, SessionEvents, Told};
use crate::shard::session::{SessionChange, SessionEvent, unseen};

/// A caller, by what it asked for.
pub(super) enum Caller {
    Publish(Answer<Published>),
    Acknowledge(Answer<Acknowledged>),
    ModifyDeadline(Answer<Modified>),
    MoveKey(Answer<KeyMoved>),
    Tell(Answer<Told>),
}

/// A call that was sent.
struct Sent {
    caller: Caller,
    /// Its part of what may be under way.
    _room: Option<OwnedSemaphorePermit>,
}

/// Everyone who waits. Dropped, callers hear that the outcome is unknown, and sessions that they
/// should be opened again.
pub(super) struct Pending {
    calls: BTreeMap<CallId, Sent>,
    sessions: BTreeMap<(ShardNumber, SessionId), SessionEvents>,
}

impl Pending {
    pub(super) fn new() -> Self {
        Pending {
            calls: BTreeMap::new(),
            sessions: BTreeMap::new(),
        }
    }

    /// A call goes out.
    pub(super) fn sent(
        &mut self,
        call: CallId,
        caller: Caller,
        room: Option<OwnedSemaphorePermit>,
    ) {
        let sent = Sent {
            caller,
            _room: room,
        };
        self.calls.insert(call, sent);
    }

    /// A caller has gone away. Answers whether the callee knows the call.
    pub(super) fn cancel(&mut self, call: CallId) -> bool {
        self.calls.remove(&call).is_some()
    }

    /// An answer has come. One for a caller that has gone away goes nowhere.
    pub(super) fn answered(&mut self, call: CallId, what: Returned) {
        if let Some(sent) = self.calls.remove(&call) {
            sent.caller.hear(what);
        }
    }

    /// A session is being opened.
    pub(super) fn opened(&mut self, shard: ShardNumber, session: SessionId, to: SessionEvents) {
        self.sessions.insert((shard, session), to);
    }

    /// A session closes; answers whether it was open.
    pub(super) fn closed(&mut self, shard: ShardNumber, session: SessionId) -> bool {
        self.sessions.remove(&(shard, session)).is_some()
    }

    /// Whether a session is open.
    pub(super) fn is_open(&self, shard: ShardNumber, session: SessionId) -> bool {
        self.sessions.contains_key(&(shard, session))
    }

    /// Something happened to a session. Where nobody listens any more, answers what is to be
    /// returned with its end.
    pub(super) fn happened(&mut self, event: SessionEvent) -> Option<Vec<AckId>> {
        let key = (event.shard, event.session);
        let Some(events) = self.sessions.get(&key) else {
            // It was closed meanwhile, with what it had: this was on its way.
            return None;
        };
        let ended = matches!(event.what, SessionChange::Ended { .. });
        let told = events.send(event);
        if ended || told.is_err() {
            self.sessions.remove(&key);
        }
        match told {
            Err(unheard) if !ended => Some(unseen(unheard.0.what)),
            _ => None,
        }
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        for ((shard, session), events) in std::mem::take(&mut self.sessions) {
            let why = Ended::Reopen;
            let what = SessionChange::Ended { why };
            let _ = events.send(SessionEvent {
                shard,
                session,
                what,
            });
        }
    }
}

impl Caller {
    fn hear(self, what: Returned) {
        let not_done = Unavailable::NOT_DONE;
        match (self, what) {
            (Caller::Publish(answer), Returned::Published(first)) => answer.send(Ok(first)),
            (Caller::Publish(answer), Returned::Refused(why)) => {
                answer.send(Err(PublishError::Refused(why)))
            }
            (Caller::Publish(answer), Returned::Moved { shard, epoch }) => {
                answer.send(Err(PublishError::Moved { shard, epoch }))
            }
            (Caller::Publish(answer), Returned::NotLeading) => answer.send(Err(not_done.into())),
            (Caller::Acknowledge(answer), Returned::Acknowledged(replies)) => {
                answer.send(Ok(replies));
            }
            (Caller::Acknowledge(answer), Returned::NotLeading) => answer.send(Err(not_done)),
            (Caller::ModifyDeadline(answer), Returned::Modified(replies)) => {
                answer.send(Ok(replies));
            }
            (Caller::ModifyDeadline(answer), Returned::NotLeading) => answer.send(Err(not_done)),
            (Caller::MoveKey(answer), Returned::KeyMoved(reply)) => answer.send(Ok(reply)),
            (Caller::MoveKey(answer), Returned::NotLeading) => answer.send(Err(not_done)),
            (Caller::Tell(answer), Returned::Told) => answer.send(Ok(())),
            (Caller::Tell(answer), Returned::NotLeading) => answer.send(Err(not_done)),
            // Unknown; or not an answer to what was asked, after which nothing is known either.
            _ => {}
        }
    }
}

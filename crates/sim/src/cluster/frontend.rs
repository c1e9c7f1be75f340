//! Sessions, as a frontend holds them: it never lets more be outstanding than the client allowed,
//! and hands to the leader's offers what credit there is.

use std::collections::BTreeMap;
use std::time::Duration;

use engine::dispatch::{Credit, Delivered, SessionKind};
use model::{Generation, NodeId, SessionId};

use crate::history::{Session, Subscription};

/// The sessions of all clients.
#[derive(Debug, Default)]
pub(super) struct Frontend {
    opened: u64,
    sessions: BTreeMap<SessionId, Pull>,
}

/// An open session.
#[derive(Clone, Debug)]
pub(super) struct Pull {
    pub(super) subscription: Subscription,
    pub(super) kind: SessionKind,
    pub(super) ack_deadline: Duration,
    /// The newest delivery that has arrived.
    pub(super) received: Option<Generation>,
    allowed: Credit,
    outstanding: Credit,
    /// Granted, and not used yet.
    granted: Credit,
    offered: Option<Credit>,
    /// Whether the leader knows of the session.
    is_known: bool,
    /// What the history says of its credit.
    was_free: bool,
}

/// The number of a session in histories.
pub(super) fn number(session: SessionId) -> Session {
    Session(session.number)
}

impl Frontend {
    pub(super) fn open(
        &mut self,
        subscription: Subscription,
        kind: SessionKind,
        ack_deadline: Duration,
        messages: u32,
    ) -> SessionId {
        self.opened += 1;
        let session = SessionId {
            node: NodeId(1),
            number: self.opened,
        };
        let bytes = u64::MAX / 2;
        let pull = Pull {
            subscription,
            kind,
            ack_deadline,
            received: None,
            allowed: Credit { messages, bytes },
            outstanding: Credit::default(),
            granted: Credit::default(),
            offered: None,
            is_known: false,
            was_free: false,
        };
        self.sessions.insert(session, pull);
        session
    }

    pub(super) fn close(&mut self, session: SessionId) -> bool {
        self.sessions.remove(&session).is_some()
    }

    pub(super) fn get(&self, session: SessionId) -> Option<&Pull> {
        self.sessions.get(&session)
    }

    pub(super) fn ids(&self) -> Vec<SessionId> {
        self.sessions.keys().copied().collect()
    }

    /// The leader that knew the sessions is gone.
    pub(super) fn forget_leader(&mut self) {
        for pull in self.sessions.values_mut() {
            pull.granted = Credit::default();
            (pull.offered, pull.is_known) = (None, false);
        }
    }

    /// The leader hears of the session.
    pub(super) fn introduce(&mut self, session: SessionId) {
        if let Some(pull) = self.sessions.get_mut(&session) {
            pull.is_known = true;
        }
    }

    /// The leader has opened the session, and counts so much as outstanding.
    pub(super) fn opened(&mut self, session: SessionId, outstanding: Credit) {
        if let Some(pull) = self.sessions.get_mut(&session) {
            pull.outstanding = outstanding;
        }
    }

    /// The leader has something; answers with what it may send now.
    pub(super) fn offer(&mut self, session: SessionId, waiting: Credit) -> Option<Credit> {
        let pull = self.sessions.get_mut(&session)?;
        assert!(
            pull.offered.is_none(),
            "one offer of a shard is open at a time"
        );
        pull.offered = Some(waiting);
        pull.grant()
    }

    /// The grant is used up by deliveries; whether the session is still open.
    pub(super) fn deliver(
        &mut self,
        session: SessionId,
        granted: Credit,
        deliveries: &[Delivered],
    ) -> bool {
        let Some(pull) = self.sessions.get_mut(&session) else {
            return false;
        };
        let newest = deliveries.last().map(|sent| sent.ack.generation);
        pull.received = newest.or(pull.received);
        let sizes = deliveries.iter().map(|sent| sent.message.len() as u64);
        let sent = Credit {
            messages: deliveries.len() as u32,
            bytes: sizes.sum(),
        };
        assert_eq!(pull.granted, granted, "a delivery ends its grant");
        pull.granted = Credit::default();
        assert!(
            sent.messages <= granted.messages,
            "no more than was granted"
        );
        pull.outstanding.messages += sent.messages;
        pull.outstanding.bytes += sent.bytes;
        true
    }

    /// Credit comes back; answers an open offer with it.
    pub(super) fn release(&mut self, session: SessionId, credit: Credit) -> Option<Credit> {
        let pull = self.sessions.get_mut(&session)?;
        let messages = pull.outstanding.messages.checked_sub(credit.messages);
        let bytes = pull.outstanding.bytes.checked_sub(credit.bytes);
        let outstanding = messages.zip(bytes);
        let (messages, bytes) = outstanding.expect("only what is outstanding comes back");
        pull.outstanding = Credit { messages, bytes };
        pull.grant()
    }

    /// Sessions whose credit came or went since they were asked last.
    pub(super) fn changed_credit(&mut self) -> Vec<(SessionId, bool)> {
        let mut changed = Vec::new();
        for (session, pull) in &mut self.sessions {
            let free = pull.is_known && pull.free().messages > 0;
            if free != pull.was_free {
                pull.was_free = free;
                changed.push((*session, free));
            }
        }
        changed
    }
}

impl Pull {
    fn free(&self) -> Credit {
        let messages = self.allowed.messages - self.outstanding.messages - self.granted.messages;
        let bytes = self.allowed.bytes - self.outstanding.bytes - self.granted.bytes;
        Credit { messages, bytes }
    }

    fn grant(&mut self) -> Option<Credit> {
        let (free, offered) = (self.free(), self.offered?);
        if free.messages == 0 {
            return None;
        }
        self.offered = None;
        self.granted = Credit {
            messages: free.messages.min(offered.messages),
            bytes: free.bytes.min(offered.bytes),
        };
        Some(self.granted)
    }
}

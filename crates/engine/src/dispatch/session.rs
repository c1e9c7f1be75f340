//! The sessions of one subscription, and where each stands with its credit.

use std::collections::BTreeMap;
use std::time::Duration;

use model::{ClientId, KeyHash, SessionId, Timestamp};

use super::{Credit, Delivered, SessionKind, affinity};

/// An open pull.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) kind: SessionKind,
    pub(super) client: Option<ClientId>,
    /// The number of its first opening.
    pub(super) first: SessionId,
    /// The lease of its deliveries.
    pub(super) ack_deadline: Duration,
    pub(super) flow: Flow,
    /// It left an offer open for so long that it seems to have no credit: work that it was to get
    /// goes to others, if there are others.
    pub(super) starved: bool,
    /// How many messages it will take, going by its last answer: as many as fit into a response if
    /// it took all that was offered.
    pub(super) appetite: u32,
}

/// How a session has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SessionEnd {
    /// Its client is gone.
    Closed,
    /// Only the way to its frontend: the client may have its stream still. A frontend that is well
    /// opens it again within such a time.
    Lost(Duration),
}

/// Where a session stands with its credit.
#[derive(Debug)]
pub(super) enum Flow {
    /// Nothing is offered.
    Idle,
    /// An offer is open.
    Offered {
        /// Since when.
        since: Timestamp,
        /// How many messages were offered.
        messages: u32,
        /// How many of the offered messages others could have instead.
        shared: u32,
    },
    /// It has granted, and waits until lanes have gone back.
    Held {
        /// The grant.
        credit: Credit,
    },
    /// It has granted, and its deliveries are being logged.
    Logging {
        /// The grant.
        credit: Credit,
        /// What it will get.
        deliveries: Vec<Delivered>,
    },
}

/// The open sessions.
#[derive(Debug, Default)]
pub(super) struct Sessions {
    open: BTreeMap<SessionId, Session>,
    /// The session that got the last offer: the others are asked first.
    last_offered: Option<SessionId>,
}

impl Session {
    /// The stream that it is, by the number that leaders of all times know it by.
    pub(super) fn stream(&self) -> Option<SessionId> {
        (self.kind == SessionKind::Stream).then_some(self.first)
    }
}

impl Sessions {
    pub(super) fn insert(&mut self, id: SessionId, session: Session) {
        self.open.insert(id, session);
    }

    pub(super) fn remove(&mut self, id: SessionId) -> Option<Session> {
        self.open.remove(&id)
    }

    pub(super) fn get(&self, id: SessionId) -> Option<&Session> {
        self.open.get(&id)
    }

    pub(super) fn get_mut(&mut self, id: SessionId) -> Option<&mut Session> {
        self.open.get_mut(&id)
    }

    pub(super) fn is_open(&self, id: SessionId) -> bool {
        self.open.contains_key(&id)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (SessionId, &Session)> {
        self.open.iter().map(|(id, session)| (*id, session))
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = (SessionId, &mut Session)> {
        self.open.iter_mut().map(|(id, session)| (*id, session))
    }

    /// The sessions without an open offer, beginning behind the one that got the last.
    pub(super) fn idle_in_turn(&self) -> Vec<SessionId> {
        let is_idle = |session: &Session| matches!(session.flow, Flow::Idle);
        let idle = self.iter().filter(|(_, session)| is_idle(session));
        let mut idle: Vec<SessionId> = idle.map(|(id, _)| id).collect();
        let turned = idle.partition_point(|id| Some(*id) <= self.last_offered);
        idle.rotate_left(turned);
        idle
    }

    /// How many messages a session will take, going by its last answer.
    pub(super) fn appetite(&self, id: SessionId) -> u32 {
        self.get(id).map_or(0, |session| session.appetite)
    }

    /// A session got an offer of `messages` messages, `shared` of which others could have instead.
    pub(super) fn offered(&mut self, id: SessionId, since: Timestamp, messages: u32, shared: u32) {
        self.last_offered = Some(id);
        if let Some(session) = self.open.get_mut(&id) {
            session.flow = Flow::Offered {
                since,
                messages,
                shared,
            };
        }
    }

    /// The open session of a client that calls itself so.
    pub(super) fn of_client(&self, client: &ClientId) -> Option<SessionId> {
        let same = |session: &Session| session.client.as_ref() == Some(client);
        self.iter().find(|(_, open)| same(open)).map(|(id, _)| id)
    }

    /// The opening that is open of what was first opened under that number.
    pub(super) fn of_first(&self, first: SessionId) -> Option<SessionId> {
        let same = |session: &Session| session.first == first;
        self.iter().find(|(_, open)| same(open)).map(|(id, _)| id)
    }

    /// The stream that a free lane should go to; none if any Pull may have it.
    ///
    /// Keys are spread over the streams that answer their offers. If none does, and no Pull either,
    /// over all of them: one of them will be the first to have credit again.
    pub(super) fn preferred(&self, strand: KeyHash) -> Option<SessionId> {
        let streams = || {
            let sessions = self.iter();
            sessions.filter(|(_, session)| session.kind == SessionKind::Stream)
        };
        let willing = streams().filter(|(_, session)| !session.starved);
        let chosen = affinity::choose(strand, willing.map(|(id, _)| id));
        let pulls = || {
            self.iter()
                .any(|(_, session)| session.kind == SessionKind::Pull && !session.starved)
        };
        match chosen {
            None if !pulls() => affinity::choose(strand, streams().map(|(id, _)| id)),
            chosen => chosen,
        }
    }

    /// Whether a key that `holder` has belongs to another stream, which could take it.
    pub(super) fn wants_home(&self, strand: KeyHash, holder: SessionId) -> bool {
        let streams = self.iter();
        let streams = streams.filter(|(_, session)| session.kind == SessionKind::Stream);
        let home = affinity::choose(strand, streams.map(|(id, _)| id));
        let home = home.filter(|home| *home != holder);
        home.and_then(|home| self.get(home))
            .is_some_and(|home| !home.starved)
    }
}

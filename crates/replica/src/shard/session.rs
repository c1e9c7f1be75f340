//! What an open pull hears from a shard, and what it says.

use std::time::Duration;

use engine::dispatch::{Credit, Delivered, Ended};
use model::{AckId, SessionId, ShardNumber};
use serde::{Deserialize, Serialize};

use super::request::{Request, Say};
use super::way::Target;

/// Something happened to a session in one of its shards.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SessionEvent {
    /// Where.
    pub shard: ShardNumber,
    /// Which session.
    pub session: SessionId,
    /// What.
    pub what: SessionChange,
}

/// What happened; the same as the outputs of [`engine::dispatch::Output`] that name a session.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum SessionChange {
    /// So much waits: grant some of it.
    Offer {
        /// What waits, within reason.
        waiting: Credit,
    },
    /// Deliveries, in the order in which the client must see them.
    Deliver {
        /// The deliveries; perhaps none.
        deliveries: Vec<Delivered>,
        /// The grant that is used up by this.
        granted: Credit,
    },
    /// So much is not outstanding any more.
    Release {
        /// Messages and bytes.
        credit: Credit,
    },
    /// The session is open. Its first event.
    Opened {
        /// What its stream has of earlier openings here, as if it had been delivered to this one.
        outstanding: Credit,
    },
    /// The subscription is now like this.
    Properties {
        /// Whether delivery is exactly-once.
        exactly_once: bool,
        /// Whether delivery is ordered.
        ordered: bool,
    },
    /// The session is over in this shard. The last event.
    Ended {
        /// Why.
        why: Ended,
    },
}

/// A session as it is open at one leader of one shard. What it says goes there and nowhere else:
/// a leader that is gone has ended the session already, and there is nobody to be told.
#[derive(Debug)]
pub struct ShardSession {
    shard: ShardNumber,
    session: SessionId,
    at: Option<Target>,
}

impl ShardSession {
    pub(super) fn new(shard: ShardNumber, session: SessionId, at: Target) -> Self {
        ShardSession {
            shard,
            session,
            at: Some(at),
        }
    }

    /// A session that was not opened, and never will be.
    pub(super) fn over(shard: ShardNumber, session: SessionId) -> Self {
        ShardSession {
            shard,
            session,
            at: None,
        }
    }

    /// The session.
    #[must_use]
    pub fn id(&self) -> SessionId {
        self.session
    }

    /// Answers an offer: so much may be sent.
    pub async fn grant(&self, credit: Credit) {
        self.say(Say::Grant { credit }).await;
    }

    /// Changes the deadline of later deliveries.
    pub async fn set_deadline(&self, ack_deadline: Duration) {
        self.say(Say::Deadline { ack_deadline }).await;
    }

    /// Ends the session. `returned` are deliveries that never reached the client.
    pub async fn close(self, returned: Vec<AckId>) {
        self.say(Say::Close { returned }).await;
    }

    async fn say(&self, say: Say) {
        let session = self.session;
        if let Some(at) = &self.at {
            let _ = at.send(self.shard, Request::Session { session, say }).await;
        }
    }
}

/// The deliveries in an event that nobody heard.
pub(super) fn unseen(what: SessionChange) -> Vec<AckId> {
    match what {
        SessionChange::Deliver { deliveries, .. } => {
            let ack = |delivered: Delivered| delivered.ack;
            deliveries.into_iter().map(ack).collect()
        }
        _ => Vec::new(),
    }
}

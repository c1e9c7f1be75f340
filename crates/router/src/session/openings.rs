//! Where a session is open: at the leader of each shard, one opening after another.

use std::collections::BTreeMap;
use std::time::Duration;

use engine::dispatch::{Delivered, OpenSession};
use futures::StreamExt;
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use model::{AckId, Generation, SessionId, ShardNumber};
use replica::ShardClient;
use replica::shard::{SessionEvent, ShardClients, ShardSession};
use tokio::sync::mpsc;
use tokio::time::timeout;

use crate::Router;

/// The pause before a second attempt at a shard; each later one is twice as long.
const PAUSE_MIN: Duration = Duration::from_millis(10);
/// The longest pause between two attempts.
const PAUSE_MAX: Duration = Duration::from_secs(1);
/// How long a session that closes waits for openings that are under way.
const CLOSE_WAIT_MAX: Duration = Duration::from_secs(5);

/// The openings of one session.
pub(super) struct Openings {
    router: Router,
    /// How it opens; the number is another one each time.
    open: OpenSession,
    events: mpsc::UnboundedSender<SessionEvent>,
    shards: BTreeMap<ShardNumber, Opening>,
    under_way: FuturesUnordered<BoxFuture<'static, Opened>>,
}

/// The present opening at one shard.
struct Opening {
    session: SessionId,
    /// Where it is open; nothing while it is under way.
    at: Option<ShardSession>,
    /// Attempts since it was last open.
    attempts: u32,
    /// The newest delivery that came, at this opening or an earlier one.
    received: Option<Generation>,
}

/// An opening that is done.
struct Opened {
    shard: ShardNumber,
    at: ShardSession,
    ack_deadline: Duration,
    /// Another leader was heard of meanwhile: attempts before say nothing of this one.
    afresh: bool,
}

impl Openings {
    /// Not open anywhere yet.
    pub(super) fn new(
        router: Router,
        open: OpenSession,
        events: mpsc::UnboundedSender<SessionEvent>,
    ) -> Self {
        Openings {
            router,
            open,
            events,
            shards: BTreeMap::new(),
            under_way: FuturesUnordered::new(),
        }
    }

    /// Opens at the shards where there is no opening yet.
    pub(super) fn open_missing(&mut self, shards: &ShardClients) {
        let mut missing: Vec<&ShardClient> = shards
            .values()
            .filter(|shard| !self.shards.contains_key(&shard.shard()))
            .collect();
        // Not always the same shard first: the first one to offer serves a Pull.
        let first = self.open.session.number as usize % missing.len().max(1);
        missing.rotate_left(first);
        for shard in missing {
            self.start(shard, 0, None);
        }
    }

    /// Gives an opening up and starts the next one; `returned` never reached the client.
    pub(super) fn reopen(&mut self, shard: &ShardClient, returned: Vec<AckId>) {
        let before = self.shards.remove(&shard.shard());
        let before = before.expect("only what was opened is opened again");
        if let Some(at) = before.at
            && !returned.is_empty()
        {
            tokio::spawn(at.close(returned));
        }
        self.start(shard, before.attempts, before.received);
    }

    /// Makes progress with an opening; waits while none is under way. Nothing is lost when the
    /// future is dropped.
    pub(super) async fn progress(&mut self) {
        let Some(opened) = self.under_way.next().await else {
            return std::future::pending().await;
        };
        let late = opened.ack_deadline != self.open.ack_deadline;
        if let Some(opening) = self.shards.get_mut(&opened.shard)
            && opening.session == opened.at.id()
        {
            if opened.afresh {
                opening.attempts = opening.attempts.min(1);
            }
            let at = opening.at.insert(opened.at);
            if late {
                at.set_deadline(self.open.ack_deadline).await;
            }
        }
    }

    /// Where the session is open.
    pub(super) fn at(&self, shard: ShardNumber) -> Option<&ShardSession> {
        self.shards.get(&shard)?.at.as_ref()
    }

    /// Whether `session` is the present opening at the shard.
    pub(super) fn is_current(&self, shard: ShardNumber, session: SessionId) -> bool {
        let opening = self.shards.get(&shard);
        opening.is_some_and(|opening| opening.session == session)
    }

    /// The shard's leader has opened the session.
    pub(super) fn succeeded(&mut self, shard: ShardNumber) {
        if let Some(opening) = self.shards.get_mut(&shard) {
            opening.attempts = 0;
        }
    }

    /// Whether no delivery of the shard has come from a later term than these, which come in the
    /// order in which they were sent. Notes that they have come, if so.
    pub(super) fn follow(&mut self, shard: ShardNumber, deliveries: &[Delivered]) -> bool {
        let (Some(oldest), Some(newest)) = (deliveries.first(), deliveries.last()) else {
            return true;
        };
        let Some(opening) = self.shards.get_mut(&shard) else {
            return false;
        };
        let term = |delivery: Generation| delivery.term;
        let follow = Some(oldest.ack.generation.term) >= opening.received.map(term);
        if follow {
            opening.received = Some(newest.ack.generation);
        }
        follow
    }

    /// Changes the deadline of later deliveries, of later openings too.
    pub(super) async fn set_deadline(&mut self, ack_deadline: Duration) {
        self.open.ack_deadline = ack_deadline;
        for opening in self.shards.values() {
            if let Some(at) = &opening.at {
                at.set_deadline(ack_deadline).await;
            }
        }
    }

    /// Closes the session everywhere. `returned` never reached the client.
    pub(super) fn close(&mut self, returned: Vec<AckId>) {
        // Outside of a runtime the whole node is going away, and its sessions with it.
        let Ok(runtime) = tokio::runtime::Handle::try_current() else {
            return;
        };
        let open = std::mem::take(&mut self.shards);
        let mut under_way = std::mem::take(&mut self.under_way);
        runtime.spawn(async move {
            for (shard, opening) in open {
                if let Some(at) = opening.at {
                    let of_shard = returned.iter().filter(|ack| ack.message.shard() == shard);
                    at.close(of_shard.copied().collect()).await;
                }
            }
            // What is still looking for a leader is given up: nobody is told.
            let closed = async {
                while let Some(opened) = under_way.next().await {
                    opened.at.close(Vec::new()).await;
                }
            };
            let _ = timeout(CLOSE_WAIT_MAX, closed).await;
        });
    }

    fn start(&mut self, shard: &ShardClient, attempts: u32, received: Option<Generation>) {
        let session = self.router.session_id();
        let opening = Opening {
            session,
            at: None,
            attempts: attempts + 1,
            received,
        };
        let number = shard.shard();
        self.shards.insert(number, opening);
        let open = OpenSession {
            session,
            received,
            ..self.open.clone()
        };
        let (shard, events) = (shard.clone(), self.events.clone());
        self.under_way.push(Box::pin(async move {
            let afresh = match pause(attempts) {
                Some(pause) => shard.leader_changes_within(pause).await,
                None => false,
            };
            let attempts = if afresh { 0 } else { attempts };
            let ack_deadline = open.ack_deadline;
            let at = shard.open_session(open, events, attempts).await;
            Opened {
                shard: number,
                at,
                ack_deadline,
                afresh,
            }
        }));
    }
}

/// How long to wait after so many attempts that did not succeed.
fn pause(attempts: u32) -> Option<Duration> {
    let doubled = attempts.checked_sub(1)?;
    Some((PAUSE_MIN * 2u32.pow(doubled.min(10))).min(PAUSE_MAX))
}

//! A session: one open pull of one client, over all shards of its subscription.
//!
//! Each shard's leader delivers on its own; the session holds the client's credit (see
//! [`crate::credit`]) and brings the deliveries together. The order within a key needs nothing
//! more, since a key lives in one shard.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::Ordering;
use std::time::Duration;

use engine::dispatch::{Credit, Delivered, Ended, OpenSession, SessionKind};
use engine::subscription::SubscriptionSettings;
use model::{AckId, ClientId, SessionId, ShardNumber, SubscriptionName};
use replica::ShardClient;
use replica::shard::{SessionChange, SessionEvent};
use tokio::sync::mpsc;

use crate::credit::Ledger;
use crate::{ResolveError, Router};

/// How a session is opened.
#[derive(Clone, Debug)]
pub struct Open {
    kind: SessionKind,
    ack_deadline: Option<Duration>,
    client: Option<ClientId>,
    limit: Credit,
}

impl Open {
    /// A StreamingPull with its own ack deadline; `limit` is what it may have outstanding.
    #[must_use]
    pub fn stream(ack_deadline: Duration, client: Option<ClientId>, limit: Credit) -> Self {
        Open {
            kind: SessionKind::Stream,
            ack_deadline: Some(ack_deadline),
            client,
            limit,
        }
    }

    /// A Pull of at most `limit`, with the subscription's ack deadline.
    #[must_use]
    pub fn pull(limit: Credit) -> Self {
        Open {
            kind: SessionKind::Pull,
            ack_deadline: None,
            client: None,
            limit,
        }
    }
}

/// What a session hears.
#[derive(Debug)]
pub enum News {
    /// For the client, in this order.
    Deliveries(Vec<Delivered>),
    /// The subscription is now like this.
    Properties {
        /// Whether delivery is exactly-once.
        exactly_once: bool,
        /// Whether delivery is ordered.
        ordered: bool,
    },
    /// The session is over.
    Ended(Ended),
}

/// An open session. Dropping it closes it everywhere and returns what was not read.
pub struct Session {
    id: SessionId,
    shards: BTreeMap<ShardNumber, ShardClient>,
    ledger: Ledger,
    /// Decided and not told yet.
    grants: VecDeque<(ShardNumber, Credit)>,
    /// Not bounded by itself; its volume is by the credit, see [`ShardClient::open_session`].
    events: mpsc::UnboundedReceiver<SessionEvent>,
    unread: Vec<AckId>,
}

impl Session {
    /// Opens the session at the leader of every shard.
    async fn open(
        open: OpenSession,
        limit: Credit,
        shards: BTreeMap<ShardNumber, ShardClient>,
    ) -> Session {
        let (sender, events) = mpsc::unbounded_channel();
        let mut order: Vec<_> = shards.values().collect();
        // Not always the same shard first: the first one to offer serves a Pull.
        let first = open.session.number as usize % order.len().max(1);
        order.rotate_left(first);
        for shard in order {
            shard.open_session(open.clone(), sender.clone()).await;
        }
        let id = open.session;
        Session {
            id,
            shards,
            ledger: Ledger::new(limit),
            grants: VecDeque::new(),
            events,
            unread: Vec::new(),
        }
    }

    /// The next thing that the client should hear. Nothing is lost when the future is dropped.
    pub async fn next(&mut self) -> News {
        loop {
            while let Some((shard, credit)) = self.grants.front() {
                self.shards[shard].grant(self.id, *credit).await;
                self.grants.pop_front();
            }
            let Some(event) = self.events.recv().await else {
                return News::Ended(Ended::Reopen);
            };
            if let Some(news) = self.heard(event) {
                return news;
            }
        }
    }

    /// Changes the deadline of later deliveries.
    pub async fn set_deadline(&self, ack_deadline: Duration) {
        for shard in self.shards.values() {
            shard.session_deadline(self.id, ack_deadline).await;
        }
    }

    /// Marks deliveries as not received by the client: they are returned when the session closes.
    pub fn return_unread(&mut self, acks: &[AckId]) {
        self.unread.extend(acks);
    }

    fn heard(&mut self, event: SessionEvent) -> Option<News> {
        let shard = event.shard;
        let news = match event.what {
            SessionChange::Offer { waiting } => {
                self.ledger.offer(shard, waiting);
                None
            }
            SessionChange::Release { credit } => {
                self.ledger.release(shard, credit);
                None
            }
            SessionChange::Deliver { deliveries, .. } => {
                self.ledger.deliver(shard, weight(&deliveries));
                (!deliveries.is_empty()).then_some(News::Deliveries(deliveries))
            }
            SessionChange::Properties {
                exactly_once,
                ordered,
            } => Some(News::Properties {
                exactly_once,
                ordered,
            }),
            SessionChange::Ended { why } => {
                self.ledger.forget(shard);
                Some(News::Ended(why))
            }
        };
        self.grants
            .extend(std::iter::from_fn(|| self.ledger.grant()));
        news
    }
}

impl Router {
    /// Opens a session of a subscription; also tells how the subscription is served.
    ///
    /// # Errors
    /// [`ResolveError`] when there is nothing to pull from.
    pub async fn open(
        &self,
        name: &SubscriptionName,
        open: Open,
    ) -> Result<(Session, SubscriptionSettings), ResolveError> {
        let subscription = self.subscription(name)?;
        let settings = subscription.settings;
        let number = self.inner.sessions.fetch_add(1, Ordering::Relaxed);
        let at_each = OpenSession {
            session: SessionId {
                node: self.inner.node,
                number,
            },
            topic: subscription.topic,
            subscription: subscription.incarnation,
            kind: open.kind,
            ack_deadline: open.ack_deadline.unwrap_or(settings.ack_deadline),
            client: open.client,
        };
        let session = Session::open(at_each, open.limit, self.inner.shards.clone()).await;
        Ok((session, settings))
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.events.close();
        while let Ok(event) = self.events.try_recv() {
            if let SessionChange::Deliver { deliveries, .. } = event.what {
                self.unread
                    .extend(deliveries.iter().map(|delivery| delivery.ack));
            }
        }
        // Outside of a runtime the whole node is going away, and its sessions with it.
        let Ok(runtime) = tokio::runtime::Handle::try_current() else {
            return;
        };
        let (id, shards) = (self.id, std::mem::take(&mut self.shards));
        let unread = std::mem::take(&mut self.unread);
        runtime.spawn(async move {
            for (number, shard) in shards {
                let of_shard = unread.iter().filter(|ack| ack.message.shard() == number);
                shard.close_session(id, of_shard.copied().collect()).await;
            }
        });
    }
}

/// What deliveries count in flow control.
fn weight(deliveries: &[Delivered]) -> Credit {
    Credit {
        messages: deliveries.len() as u32,
        bytes: deliveries
            .iter()
            .map(|delivery| delivery.message.len() as u64)
            .sum(),
    }
}

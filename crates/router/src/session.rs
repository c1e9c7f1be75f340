//! A session: one open pull of one client, over all shards of its subscription.
//!
//! Each shard's leader delivers on its own; the session holds the client's credit (see
//! [`crate::credit`]) and brings the deliveries together. The order within a key needs nothing
//! more while the key stays in its shard; for those that move see `moved`.
//!
//! Leaders come and go, and shards become more: the session opens itself at each leader that there
//! is (see `openings`), and the client notices nothing. Each opening has a number of its own, so
//! that what an earlier one still says, or gives back, counts for nothing.

mod moved;
mod openings;

use std::collections::VecDeque;
use std::time::Duration;

use engine::dispatch::{Credit, Delivered, Ended, OpenSession, SessionKind};
use engine::subscription::SubscriptionSettings;
use model::{AckId, ClientId, Incarnation, SessionId, ShardNumber, SubscriptionName};
use replica::shard::{SessionChange, SessionEvent, ShardClients};
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, Interval, MissedTickBehavior, interval_at};

use self::moved::Moved;
use self::openings::Openings;
use crate::credit::Ledger;
use crate::{ResolveError, Router};

/// A topic whose messages must not pass through a region any more ends the sessions there so much
/// later.
const LOOK_EVERY: Duration = Duration::from_millis(500);

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
    /// The session is over: [`Router::why_ended`] says why.
    Ended,
}

/// An open session. Dropping it closes it everywhere and returns what was not read.
pub struct Session {
    router: Router,
    name: SubscriptionName,
    subscription: Incarnation,
    shards: watch::Receiver<ShardClients>,
    openings: Openings,
    ledger: Ledger,
    moved: Moved,
    /// Decided and not told yet.
    grants: VecDeque<(ShardNumber, Credit)>,
    /// Not bounded by itself; its volume is by the credit, see
    /// [`replica::ShardClient::open_session`].
    events: mpsc::UnboundedReceiver<SessionEvent>,
    unread: Vec<AckId>,
    /// When it is looked next whether the topic's messages may still pass through this node.
    looks: Interval,
}

impl Session {
    /// The next thing that the client should hear. Nothing is lost when the future is dropped.
    pub async fn next(&mut self) -> News {
        loop {
            self.tell_grants().await;
            tokio::select! {
                biased;
                () = self.openings.progress() => {}
                Ok(()) = self.shards.changed() => self.open_new(),
                _ = self.looks.tick() => {
                    if self.router.keeps_out(&self.name) {
                        return News::Ended;
                    }
                }
                Some(event) = self.events.recv() => {
                    if let Some(news) = self.heard(event) {
                        return news;
                    }
                }
            }
        }
    }

    /// The subscription that it pulls from.
    #[must_use]
    pub fn subscription(&self) -> Incarnation {
        self.subscription
    }

    /// Changes the deadline of later deliveries.
    pub async fn set_deadline(&mut self, ack_deadline: Duration) {
        self.openings.set_deadline(ack_deadline).await;
    }

    /// Marks deliveries as not received by the client: they are returned when the session closes.
    pub fn return_unread(&mut self, acks: &[AckId]) {
        self.unread.extend(acks);
    }

    /// Opens at every shard that is new.
    fn open_new(&mut self) {
        let shards = self.shards.borrow_and_update().clone();
        self.openings.open_missing(&shards);
    }

    async fn tell_grants(&mut self) {
        while let Some((shard, credit)) = self.grants.front() {
            match self.openings.at(*shard) {
                Some(at) => {
                    at.grant(*credit).await;
                    self.grants.pop_front();
                }
                // It has made its offer before the opening was seen to be done.
                None => self.openings.progress().await,
            }
        }
    }

    fn heard(&mut self, event: SessionEvent) -> Option<News> {
        let shard = event.shard;
        if !self.openings.is_current(shard, event.session) {
            return None;
        }
        let news = match event.what {
            SessionChange::Opened { outstanding } => {
                self.openings.succeeded(shard);
                self.ledger.open(shard, outstanding);
                None
            }
            SessionChange::Offer { waiting } => {
                self.ledger.offer(shard, waiting);
                None
            }
            SessionChange::Release { credit } => {
                self.ledger.release(shard, credit);
                None
            }
            SessionChange::Deliver { deliveries, .. } => self.delivered(shard, deliveries),
            SessionChange::Properties {
                exactly_once,
                ordered,
            } => Some(News::Properties {
                exactly_once,
                ordered,
            }),
            SessionChange::Ended { why } => self.ended(shard, why),
        };
        self.grants
            .extend(std::iter::from_fn(|| self.ledger.grant()));
        news
    }

    /// Deliveries of a shard; none of them is from an older term than the session has seen.
    fn delivered(&mut self, shard: ShardNumber, deliveries: Vec<Delivered>) -> Option<News> {
        if !self.openings.follow(shard, &deliveries) {
            // A leader of the past. Its deliveries go back, and the session looks for the present
            // one.
            let acks = deliveries.iter().map(|delivery| delivery.ack).collect();
            self.reopen(shard, acks);
            return None;
        }
        self.ledger.deliver(shard, weight(&deliveries));
        let deliveries = self.moved.in_time(shard, deliveries);
        (!deliveries.is_empty()).then_some(News::Deliveries(deliveries))
    }

    /// The session is over in a shard: opened again, unless it is over everywhere.
    fn ended(&mut self, shard: ShardNumber, why: Ended) -> Option<News> {
        let over = match why {
            Ended::TakenOver => true,
            Ended::Reopen => false,
            // Or the shard's leader knows less than this node of a subscription that is there.
            Ended::NotAttached => !self.router.is_attached(&self.name, self.subscription),
        };
        self.reopen(shard, Vec::new());
        over.then_some(News::Ended)
    }

    fn reopen(&mut self, shard: ShardNumber, returned: Vec<AckId>) {
        self.ledger.close(shard);
        self.grants.retain(|(granted, _)| *granted != shard);
        let client = self.shards.borrow().get(&shard).cloned();
        let client = client.expect("a shard is never forgotten");
        self.openings.reopen(&client, returned);
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
        self.admit_session()?;
        let subscription = self.subscription(name).await?;
        self.admit_pull(&subscription)?;
        let settings = subscription.settings;
        let session = self.session_id();
        let at_each = OpenSession {
            session,
            first: session,
            received: None,
            topic: subscription.topic,
            subscription: subscription.incarnation,
            kind: open.kind,
            ack_deadline: open.ack_deadline.unwrap_or(settings.ack_deadline),
            client: open.client,
        };
        let (sender, events) = mpsc::unbounded_channel();
        let mut session = Session {
            router: self.clone(),
            name: name.clone(),
            subscription: subscription.incarnation,
            shards: self.shards().watch(),
            openings: Openings::new(self.clone(), at_each, sender),
            ledger: Ledger::new(open.limit),
            moved: Moved::default(),
            grants: VecDeque::new(),
            events,
            unread: Vec::new(),
            looks: looks(),
        };
        session.open_new();
        Ok((session, settings))
    }

    /// A number that no session of this node has had.
    fn session_id(&self) -> SessionId {
        SessionId {
            node: self.inner.node,
            number: self.inner.sessions.take(),
        }
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
        self.openings.close(std::mem::take(&mut self.unread));
    }
}

/// When a session looks whether it may go on; not all of a node's in the same moment.
fn looks() -> Interval {
    let mut looks = interval_at(Instant::now() + LOOK_EVERY, LOOK_EVERY);
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    looks
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

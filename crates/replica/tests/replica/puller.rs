//! A session that takes what it is offered.

use std::time::Duration;

use engine::control::Subscription;
use engine::dispatch::{AckReply, Credit, Delivered, Ended, OpenSession, SessionKind};
use model::{AckId, SessionId};
use replica::ShardClient;
use replica::shard::{SessionChange, SessionEvent, ShardSession};
use tokio::sync::mpsc;

use crate::node::{NODE, soon};

/// One open stream of one shard.
pub(crate) struct Puller {
    session: ShardSession,
    shard: ShardClient,
    subscription: Subscription,
    events: mpsc::UnboundedReceiver<SessionEvent>,
}

impl Puller {
    /// Opens the stream of that number.
    pub(crate) async fn open(
        shard: &ShardClient,
        subscription: &Subscription,
        number: u64,
    ) -> Puller {
        let session = SessionId { node: NODE, number };
        let (sender, events) = mpsc::unbounded_channel();
        let open = OpenSession {
            session,
            topic: subscription.topic,
            subscription: subscription.incarnation,
            kind: SessionKind::Stream,
            ack_deadline: Duration::from_secs(60),
            client: None,
            first: session,
            received: None,
        };
        let session = soon("an opening", shard.open_session(open, sender, 0)).await;
        Puller {
            session,
            shard: shard.clone(),
            subscription: subscription.clone(),
            events,
        }
    }

    /// The next deliveries; at least one.
    pub(crate) async fn deliveries(&mut self) -> Vec<Delivered> {
        loop {
            match self.event().await {
                SessionChange::Offer { waiting } => self.take(waiting).await,
                SessionChange::Deliver { deliveries, .. } if !deliveries.is_empty() => {
                    return deliveries;
                }
                SessionChange::Ended { why } => panic!("the session ended: {why:?}"),
                _ => {}
            }
        }
    }

    /// The next so many deliveries.
    pub(crate) async fn take_messages(&mut self, count: usize) -> Vec<Delivered> {
        let mut deliveries = Vec::new();
        while deliveries.len() < count {
            deliveries.extend(self.deliveries().await);
        }
        deliveries
    }

    /// Takes an offer, and is gone before the deliveries come. Nobody closes the session.
    pub(crate) async fn vanish(mut self) {
        loop {
            if let SessionChange::Offer { waiting } = self.event().await {
                return self.take(waiting).await;
            }
        }
    }

    /// Closes the session; nothing is returned.
    pub(crate) async fn close(self) {
        self.session.close(Vec::new()).await;
    }

    /// Waits for the end of the session.
    pub(crate) async fn ended(&mut self) -> Ended {
        loop {
            if let SessionChange::Ended { why } = self.event().await {
                return why;
            }
        }
    }

    pub(crate) async fn acknowledge(&self, ids: Vec<AckId>) -> Vec<AckReply> {
        let replies = self
            .shard
            .acknowledge(self.subscription.incarnation, ids, None);
        soon("an ack", replies).await.expect("the node serves")
    }

    /// Lets leases end now.
    pub(crate) async fn nack(&self, ids: Vec<AckId>) {
        let now = ids.into_iter().map(|id| (id, Duration::ZERO)).collect();
        let modified = self
            .shard
            .modify_deadline(self.subscription.incarnation, now, None);
        soon("a nack", modified).await.expect("the node serves");
    }

    async fn take(&self, waiting: Credit) {
        self.session.grant(waiting).await;
    }

    async fn event(&mut self) -> SessionChange {
        let event = soon("an event", self.events.recv()).await;
        event.expect("a session hears of its end").what
    }
}

/// The encoded messages of deliveries.
pub(crate) fn messages(deliveries: &[Delivered]) -> Vec<&[u8]> {
    deliveries
        .iter()
        .map(|delivered| &delivered.message[..])
        .collect()
}

pub(crate) fn ack_ids(deliveries: &[Delivered]) -> Vec<AckId> {
    deliveries.iter().map(|delivered| delivered.ack).collect()
}

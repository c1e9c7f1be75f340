//! A client that streams, and judges what it is sent.

use std::collections::BTreeMap;
use std::time::Duration;

use engine::dispatch::{Credit, Delivered};
use model::{AckId, MessageId, SubscriptionName};
use router::session::{News, Session};
use router::{Open, Router};

use crate::cluster::{data, soon};

/// A stream that must never end.
pub(crate) struct Reader {
    session: Session,
    router: Router,
    subscription: SubscriptionName,
    /// The id of each message that was delivered.
    pub(crate) ids: BTreeMap<String, MessageId>,
    /// In the order in which each was delivered first.
    pub(crate) first: Vec<String>,
}

impl Reader {
    /// Opens a stream that takes so many messages at once.
    pub(crate) async fn open(
        router: &Router,
        subscription: &SubscriptionName,
        messages: u32,
    ) -> Reader {
        let limit = Credit {
            messages,
            bytes: 1 << 30,
        };
        let open = Open::stream(Duration::from_secs(60), None, limit);
        let (session, _) = router.open(subscription, open).await.expect("it exists");
        Reader {
            session,
            router: router.clone(),
            subscription: subscription.clone(),
            ids: BTreeMap::new(),
            first: Vec::new(),
        }
    }

    /// The next deliveries, noted and not acknowledged.
    pub(crate) async fn deliveries(&mut self) -> Vec<Delivered> {
        loop {
            match soon("news", self.session.next()).await {
                News::Deliveries(deliveries) => {
                    deliveries.iter().for_each(|delivery| self.note(delivery));
                    return deliveries;
                }
                News::Properties { .. } => {}
                News::Ended => panic!("the stream ended"),
            }
        }
    }

    /// Reads and acknowledges until so many messages have come.
    pub(crate) async fn read(&mut self, count: usize) {
        while self.first.len() < count {
            let deliveries = self.deliveries().await;
            let acks = deliveries.iter().map(|delivery| delivery.ack).collect();
            // A leader that is just going leaves it open: then the message comes again.
            let _ = self.acknowledge(acks).await;
        }
    }

    /// Whether something comes within this time.
    pub(crate) async fn hears_within(&mut self, time: Duration) -> bool {
        tokio::time::timeout(time, self.deliveries()).await.is_ok()
    }

    pub(crate) async fn acknowledge(&self, acks: Vec<AckId>) -> bool {
        let acknowledged = self.router.acknowledge(&self.subscription, acks, None);
        soon("an answer to acks", acknowledged).await.is_ok()
    }

    fn note(&mut self, delivery: &Delivered) {
        let data = data(&delivery.message);
        let id = delivery.ack.message;
        let known = self.ids.insert(data.clone(), id);
        match known {
            None => self.first.push(data),
            Some(known) => assert_eq!(known, id, "{data} was stored twice"),
        }
    }
}

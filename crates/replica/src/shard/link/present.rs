//! Which node is linked by which stream: the newer of two ends the older.
//!
//! What a node says on a new link comes after all that it said on the older one: the older link
//! has ended, and its sessions are closed, before anything of the new one is taken up. So an
//! abandoned publish never lands behind its retry, and a session never closes its successor.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use model::NodeId;
use tokio::sync::watch;

/// The links that are up, by calling node. Clones are the same.
#[derive(Clone, Default)]
pub(super) struct Present(Arc<Mutex<BTreeMap<NodeId, Place>>>);

struct Place {
    number: u64,
    /// Dropped when a newer link comes.
    stay: watch::Sender<()>,
    /// Closed when the link is over.
    over: watch::Receiver<()>,
}

/// *Refused*: a link with a higher number has the place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Newer {
    /// Its number.
    pub(super) number: u64,
}

/// A link's place. Dropped, the link is over.
pub(super) struct Held {
    stay: watch::Receiver<()>,
    _over: watch::Sender<()>,
}

impl Present {
    /// Takes the place of a node's link, and waits until the one before is over.
    ///
    /// # Errors
    /// [`Newer`].
    pub(super) async fn take(&self, node: NodeId, number: u64) -> Result<Held, Newer> {
        let (stay, staying) = watch::channel(());
        let (holds, over) = watch::channel(());
        let place = Place { number, stay, over };
        let before = {
            let mut places = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            let newest = places.get(&node).map(|place| place.number);
            if let Some(newer) = newest.filter(|newest| *newest >= number) {
                return Err(Newer { number: newer });
            }
            places.insert(node, place)
        };
        if let Some(Place { stay, mut over, .. }) = before {
            drop(stay);
            while over.changed().await.is_ok() {}
        }
        Ok(Held {
            stay: staying,
            _over: holds,
        })
    }
}

impl Held {
    /// Waits until a newer link wants the place.
    pub(super) async fn lost(&mut self) {
        while self.stay.changed().await.is_ok() {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NODE: NodeId = NodeId(7);

    #[tokio::test]
    async fn a_node_whose_numbers_went_back_hears_above_which_they_must_be() {
        let present = Present::default();
        drop(present.take(NODE, 1_000).await.expect("the place is free"));
        let refused = present.take(NODE, 400).await.err();
        assert_eq!(refused, Some(Newer { number: 1_000 }));
        assert!(present.take(NODE, 1_001).await.is_ok());
    }
}

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

/// A link's place. Dropped, the link is over.
pub(super) struct Held {
    stay: watch::Receiver<()>,
    _over: watch::Sender<()>,
}

impl Present {
    /// Takes the place of a node's link, and waits until the one before is over. `None` when a
    /// newer one has it.
    pub(super) async fn take(&self, node: NodeId, number: u64) -> Option<Held> {
        let (stay, staying) = watch::channel(());
        let (holds, over) = watch::channel(());
        let place = Place { number, stay, over };
        let before = {
            let mut places = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            if places
                .get(&node)
                .is_some_and(|place| place.number >= number)
            {
                return None;
            }
            places.insert(node, place)
        };
        if let Some(Place { stay, mut over, .. }) = before {
            drop(stay);
            while over.changed().await.is_ok() {}
        }
        Some(Held {
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

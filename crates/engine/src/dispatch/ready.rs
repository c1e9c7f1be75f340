//! The lanes that can go on, each waiting in the queue of one session or in the common one.

use std::collections::{BTreeMap, BTreeSet};

use model::{KeyHash, SessionId};

use super::Credit;
use super::lane::Lane;

/// Where a lane waits; it says which entry of which queue is the lane's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    /// The stream whose turn it is; none for whoever asks.
    pub(super) queue: Option<SessionId>,
    order: u64,
    waiting: Credit,
}

/// All queues. Each is served in turn, so that no lane waits for another one to be empty.
#[derive(Debug, Default)]
pub(super) struct Ready {
    queues: BTreeMap<Option<SessionId>, Queue>,
    orders: u64,
}

#[derive(Debug, Default)]
struct Queue {
    lanes: BTreeSet<(u64, KeyHash)>,
    waiting: Credit,
}

impl Ready {
    /// Puts a lane into a queue. One that is there already keeps its turn.
    pub(super) fn place(&mut self, strand: KeyHash, lane: &mut Lane, queue: Option<SessionId>) {
        let order = match lane.place {
            Some(place) if place.queue == queue => place.order,
            _ => {
                self.orders += 1;
                self.orders
            }
        };
        self.remove(strand, lane);
        let waiting = Credit {
            messages: lane.waiting.messages.max(1),
            bytes: lane.waiting.bytes.max(1),
        };
        let lanes = self.queues.entry(queue).or_default();
        lanes.lanes.insert((order, strand));
        lanes.waiting.add(waiting);
        lane.place = Some(Place {
            queue,
            order,
            waiting,
        });
    }

    /// Takes a lane out of its queue, if it is in one.
    pub(super) fn remove(&mut self, strand: KeyHash, lane: &mut Lane) {
        let Some(place) = lane.place.take() else {
            return;
        };
        let queue = self.queues.get_mut(&place.queue);
        let queue = queue.expect("a lane's place names a queue");
        queue.lanes.remove(&(place.order, strand));
        queue.waiting.subtract(place.waiting);
        if queue.lanes.is_empty() {
            self.queues.remove(&place.queue);
        }
    }

    /// The lane whose turn it is.
    pub(super) fn first(&self, queue: Option<SessionId>) -> Option<KeyHash> {
        let (_, strand) = self.queues.get(&queue)?.lanes.first()?;
        Some(*strand)
    }

    /// All lanes of a queue.
    pub(super) fn lanes(&self, queue: Option<SessionId>) -> Vec<KeyHash> {
        let queue = self.queues.get(&queue);
        let lanes = queue.iter().flat_map(|queue| &queue.lanes);
        lanes.map(|(_, strand)| *strand).collect()
    }

    /// About what waits in a queue.
    pub(super) fn waiting(&self, queue: Option<SessionId>) -> Credit {
        let queue = self.queues.get(&queue);
        queue.map_or_else(Credit::default, |queue| queue.waiting)
    }

    /// How many lanes wait.
    pub(super) fn len(&self) -> usize {
        self.queues.values().map(|queue| queue.lanes.len()).sum()
    }
}

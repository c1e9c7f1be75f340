//! The links of a node to others.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use engine::dispatch::TransferMessage;
use model::limits::{LINK_CALLS_BYTES_MAX, LINK_CALLS_WAITING_MAX};
use model::{NodeId, ShardNumber};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, watch};
use tokio::time::Instant;

use super::caller;
use super::wire::CallId;
use crate::peer::{Peers, Use};
use crate::shard::request::Request;
use crate::shard::way::Hints;

/// A link that takes longer than this to come up is tried after others.
const SLOW_AFTER: Duration = Duration::from_millis(300);
/// A node that could not be reached is tried after others for so long.
const DOUBT_FOR: Duration = Duration::from_secs(1);
/// A node that could not be reached is not dialled again before.
const DIAL_PAUSE: Duration = Duration::from_millis(100);
/// What a call weighs besides its payload or ids.
const CALL_OVERHEAD_BYTES: usize = 512;
/// What an ack id weighs.
const ID_BYTES: usize = 64;

/// The links of this node. Clones are the same.
#[derive(Clone)]
pub struct Links {
    inner: Arc<Inner>,
}

struct Inner {
    peers: Peers,
    hints: Hints,
    links: Mutex<BTreeMap<NodeId, Link>>,
    /// The number of the next link.
    number: Arc<AtomicU64>,
}

/// The calling end of a link. Clones are the same.
#[derive(Clone)]
pub(in crate::shard) struct Link {
    queue: mpsc::Sender<Waiting>,
    cancels: mpsc::UnboundedSender<CallId>,
    room: Arc<Semaphore>,
    next: Arc<AtomicU64>,
    state: watch::Receiver<State>,
}

/// A call that waits to be sent.
pub(super) struct Waiting {
    pub(super) call: CallId,
    pub(super) shard: ShardNumber,
    pub(super) request: Request,
    /// Its part of [`LINK_CALLS_BYTES_MAX`], until it is answered. What sessions say has none: it
    /// is bounded by their number, and never waits behind calls that are not answered.
    pub(super) room: Option<OwnedSemaphorePermit>,
}

/// How a link is.
#[derive(Clone, Copy, Debug)]
pub(super) enum State {
    /// Not up yet, since then.
    Dialling(Instant),
    Up,
    /// Over, since then.
    Down(Instant),
}

/// The end of a link that its task holds.
pub(super) struct Source {
    pub(super) queue: mpsc::Receiver<Waiting>,
    pub(super) cancels: mpsc::UnboundedReceiver<CallId>,
    pub(super) state: watch::Sender<State>,
}

/// A call on a link, whose caller may go away.
pub(in crate::shard) struct Called {
    call: CallId,
    cancels: Option<mpsc::UnboundedSender<CallId>>,
}

impl Links {
    /// The links to these peers, none of them dialled. `first` should be greater than the number of
    /// any link that this node has made, over all of its restarts: the wall clock in microseconds,
    /// unless it was set back. Then others say how far the node has come.
    #[must_use]
    pub fn new(peers: Peers, first: u64) -> Self {
        Links {
            inner: Arc::new(Inner {
                peers,
                hints: Hints::default(),
                links: Mutex::default(),
                number: Arc::new(AtomicU64::new(first)),
            }),
        }
    }

    /// This node.
    pub(in crate::shard) fn node(&self) -> NodeId {
        self.inner.peers.settings().node
    }

    /// What other nodes said about who leads.
    pub(in crate::shard) fn hints(&self) -> &Hints {
        &self.inner.hints
    }

    /// The link to a node, dialled if it is not up. `None` when the node can't be dialled now.
    pub(in crate::shard) fn to(&self, node: NodeId) -> Option<Link> {
        let mut links = self.links();
        match links.get(&node).map(|link| (link, link.state())) {
            Some((link, State::Dialling(_) | State::Up)) => return Some(link.clone()),
            Some((_, State::Down(since))) if since.elapsed() < DIAL_PAUSE => return None,
            Some(_) | None => {}
        }
        let channel = self.inner.peers.channel(node, Use::Calls).ok()?;
        let number = self.inner.number.fetch_add(1, Ordering::Relaxed);
        let (link, source) = Link::new();
        let caller = caller::Caller {
            from: self.node(),
            to: node,
            number,
            numbers: self.inner.number.clone(),
            hints: self.inner.hints.clone(),
        };
        tokio::spawn(caller.work(channel, source));
        links.insert(node, link.clone());
        Some(link)
    }

    /// Whether others should be asked first: the node was not reached lately.
    pub(in crate::shard) fn doubts(&self, node: NodeId) -> bool {
        match self.links().get(&node).map(Link::state) {
            None | Some(State::Up) => false,
            Some(State::Dialling(since)) => since.elapsed() > SLOW_AFTER,
            Some(State::Down(since)) => since.elapsed() < DOUBT_FOR,
        }
    }

    fn links(&self) -> std::sync::MutexGuard<'_, BTreeMap<NodeId, Link>> {
        // A map of handles has no half-made change.
        self.inner
            .links
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Links {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "links of node {}", self.node())
    }
}

impl Link {
    fn new() -> (Link, Source) {
        let (queue, waiting) = mpsc::channel(LINK_CALLS_WAITING_MAX);
        let (cancels, cancelled) = mpsc::unbounded_channel();
        let (state, watched) = watch::channel(State::Dialling(Instant::now()));
        let link = Link {
            queue,
            cancels,
            room: Arc::new(Semaphore::new(LINK_CALLS_BYTES_MAX)),
            next: Arc::new(AtomicU64::new(0)),
            state: watched,
        };
        let source = Source {
            queue: waiting,
            cancels: cancelled,
            state,
        };
        (link, source)
    }

    fn state(&self) -> State {
        *self.state.borrow()
    }

    /// Sends a request to a shard, behind those that wait. When what it gives is dropped before
    /// it is told of the answer, the callee hears of it.
    ///
    /// # Errors
    /// The request, when the link is over: nothing was done.
    pub(in crate::shard) async fn send(
        &self,
        shard: ShardNumber,
        request: Request,
    ) -> Result<Called, Request> {
        let room = match weight(&request) {
            0 => None,
            weight => {
                let room = self.room.clone().acquire_many_owned(weight).await;
                Some(room.expect("the semaphore is never closed"))
            }
        };
        let call = CallId(self.next.fetch_add(1, Ordering::Relaxed));
        let is_call = room.is_some();
        let waiting = Waiting {
            call,
            shard,
            request,
            room,
        };
        match self.queue.send(waiting).await {
            Ok(()) => Ok(Called {
                call,
                cancels: is_call.then(|| self.cancels.clone()),
            }),
            Err(mpsc::error::SendError(waiting)) => Err(waiting.request),
        }
    }
}

impl fmt::Debug for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "link {:?}", self.state())
    }
}

impl Called {
    /// The answer has come.
    pub(in crate::shard) fn answered(mut self) {
        self.cancels = None;
    }
}

impl Drop for Called {
    fn drop(&mut self) {
        if let Some(cancels) = self.cancels.take() {
            let _ = cancels.send(self.call);
        }
    }
}

/// What a request counts of [`LINK_CALLS_BYTES_MAX`]; nothing if nobody waits for an answer.
fn weight(request: &Request) -> u32 {
    let bytes = match request {
        Request::Publish { payload, .. } => payload.as_bytes().len(),
        Request::Acknowledge { ids, .. } => ids.len() * ID_BYTES,
        Request::ModifyDeadline { ids, .. } => ids.len() * ID_BYTES,
        Request::MoveKey { .. } => 0,
        Request::Tell {
            message: TransferMessage::Copy { payloads, .. },
            ..
        } => payloads.iter().map(Vec::len).sum(),
        Request::Tell { .. } => 0,
        Request::Catalogue { .. }
        | Request::CompareCatalogue { .. }
        | Request::OpenSession { .. }
        | Request::Session { .. }
        | Request::LoseSession { .. } => return 0,
    };
    (CALL_OVERHEAD_BYTES + bytes).min(LINK_CALLS_BYTES_MAX) as u32
}

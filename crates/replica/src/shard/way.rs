//! The way to a shard's leader: here, or on another node.
//!
//! Who leads is known from what other nodes said; else from this node's own replica, if there is
//! one, which may be out of touch or belong to the group no more; else the voters are asked in turn.
//! Every call searches for itself, so that none waits behind another, and a call that was certainly
//! not done is sent again until its time is over.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use model::{NodeId, ShardNumber};
use tokio::sync::{Semaphore, mpsc, watch};
use tokio::time::sleep;

use super::link::{Called, Link, Links};
use super::local::LocalShard;
use super::request::Request;

/// The first pause of a search that has asked everyone; each later one is twice as long.
const PAUSE_MIN: Duration = Duration::from_millis(10);
/// The longest pause of a search.
const PAUSE_MAX: Duration = Duration::from_millis(500);
/// The longest pause of one search of all those for the same shard: what it finds the others hear,
/// and so they can wait for longer.
const PAUSE_FIRST_MAX: Duration = Duration::from_millis(100);

/// What is known of the way to one shard.
#[derive(Debug)]
pub(super) struct Way {
    shard: ShardNumber,
    links: Links,
    known: watch::Sender<Known>,
    /// Who led last, as far as the replica on this node has heard. No node has the number zero.
    heard: AtomicU64,
    /// Whose turn it is where nobody knows who leads.
    turn: AtomicUsize,
    /// For the search that has the shortest pauses.
    first: Semaphore,
}

/// What a node knows of a shard.
#[derive(Clone, Debug, Default)]
pub(super) struct Known {
    /// The replica on this node.
    pub(super) here: Option<LocalShard>,
    /// The nodes with voters, in the order in which they should be asked.
    pub(super) voters: Vec<NodeId>,
}

/// Where calls go.
#[derive(Clone, Debug)]
pub(super) enum Target {
    /// To the task of this node's replica.
    Here(mpsc::Sender<Request>),
    /// To another node.
    There(NodeId, Link),
}

/// What other nodes said about who leads which shard. Clones are the same.
#[derive(Clone, Debug, Default)]
pub(super) struct Hints {
    leaders: Arc<Mutex<BTreeMap<ShardNumber, NodeId>>>,
    /// Says that something was learnt.
    news: watch::Sender<()>,
}

/// The search of one call for a leader.
pub(super) struct Search<'w> {
    way: &'w Way,
    /// How many of those who may lead were asked before this search.
    skipped: usize,
    /// Who was asked since the last pause.
    asked: BTreeSet<NodeId>,
    pause: Duration,
}

impl Way {
    pub(super) fn new(shard: ShardNumber, links: Links) -> Self {
        Way {
            shard,
            links,
            known: watch::Sender::new(Known::default()),
            heard: AtomicU64::new(0),
            turn: AtomicUsize::new(0),
            first: Semaphore::new(1),
        }
    }

    pub(super) fn shard(&self) -> ShardNumber {
        self.shard
    }

    /// What is known now.
    pub(super) fn known(&self) -> watch::Ref<'_, Known> {
        self.known.borrow()
    }

    /// A replica of the shard is on this node.
    pub(super) fn host(&self, here: LocalShard) {
        self.known.send_modify(|known| known.here = Some(here));
    }

    /// These nodes have voters, and should be asked in this order.
    pub(super) fn place(&self, voters: Vec<NodeId>) {
        self.known.send_if_modified(|known| {
            let changed = known.voters != voters;
            known.voters = voters;
            changed
        });
    }

    /// A new search.
    pub(super) fn search(&self) -> Search<'_> {
        self.search_behind(0)
    }

    /// A search that begins behind so many of those who may lead.
    pub(super) fn search_behind(&self, skipped: usize) -> Search<'_> {
        Search {
            way: self,
            skipped,
            asked: BTreeSet::new(),
            pause: PAUSE_MIN,
        }
    }

    /// Waits until the shard's leader is known: it serves here, or another node leads. `None` when
    /// it never will be.
    pub(super) async fn leads(&self) -> Option<()> {
        let mut pause = PAUSE_MIN;
        loop {
            match self.state() {
                Standing::Known => return Some(()),
                Standing::Over => return None,
                Standing::Unknown => self.news(&mut pause).await,
            }
        }
    }

    fn state(&self) -> Standing {
        let known = self.known();
        let serves = known.here.as_ref().is_some_and(LocalShard::serves);
        if serves || self.leader_elsewhere(&known).is_some() {
            Standing::Known
        } else if self.is_over(&known) {
            Standing::Over
        } else {
            Standing::Unknown
        }
    }

    /// Whether nobody will ever answer: this node shuts down, and there is no other.
    fn is_over(&self, known: &Known) -> bool {
        let node = self.links.node();
        known.here.as_ref().is_some_and(LocalShard::is_closed)
            && known.voters.iter().all(|voter| *voter == node)
    }

    /// Another node that leads, as far as this one knows. Others know better than a replica that is
    /// out of touch; but what a replica hears anew is newer than what they said.
    fn leader_elsewhere(&self, known: &Known) -> Option<NodeId> {
        let hints = self.links.hints();
        let here = known.here.as_ref().and_then(LocalShard::leader);
        if let Some(leader) = here
            && self.heard.swap(leader.0, Ordering::Relaxed) != leader.0
        {
            hints.learn(self.shard, here);
        }
        let leader = hints.of(self.shard).or(here);
        leader.filter(|leader| *leader != self.links.node())
    }

    /// Waits until something has changed, or for a while that grows.
    async fn news(&self, pause: &mut Duration) {
        let first = self.first.try_acquire();
        let within = match first {
            Ok(_) => PAUSE_FIRST_MAX.min(*pause),
            Err(_) => *pause,
        };
        self.changes_within(within).await;
        *pause = (*pause * 2).min(PAUSE_MAX);
    }

    /// Waits until something has changed, but not for longer than `within`. Answers whether it has.
    pub(super) async fn changes_within(&self, within: Duration) -> bool {
        let mut known = self.known.subscribe();
        let here = known.borrow_and_update().here.clone();
        let local = async {
            match here {
                Some(here) => here.news().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = local => true,
            _ = known.changed() => true,
            () = self.links.hints().news_of(self.shard) => true,
            () = sleep(within) => false,
        }
    }
}

/// Whether it is known who leads.
enum Standing {
    Known,
    Unknown,
    /// It never will be.
    Over,
}

impl Search<'_> {
    /// Where to try next; waits when everyone was asked. `None` when nobody will ever answer.
    pub(super) async fn next(&mut self) -> Option<Target> {
        loop {
            if let Some(target) = self.candidate() {
                return Some(target);
            }
            if self.way.is_over(&self.way.known()) {
                return None;
            }
            self.way.news(&mut self.pause).await;
            self.asked.clear();
        }
    }

    /// Whoever was asked leads: later searches begin there.
    pub(super) fn found(&self, target: &Target) {
        if let Target::There(node, _) = target {
            self.way.links.hints().learn(self.way.shard, Some(*node));
        }
    }

    /// Who was not asked yet and may lead: who is known to, then whoever is well connected.
    fn candidate(&mut self) -> Option<Target> {
        let (way, node) = (self.way, self.way.links.node());
        let known = way.known();
        if let Some(here) = &known.here
            && here.takes_calls()
            && self.asked.insert(node)
        {
            return Some(Target::Here(here.requests().clone()));
        }
        let leader = way.leader_elsewhere(&known);
        let voters = known.voters.len().max(1);
        let turn = match leader {
            Some(_) => 0,
            None => way.turn.fetch_add(1, Ordering::Relaxed) % voters,
        };
        let (later, first) = known.voters.split_at(turn.min(known.voters.len()));
        let mut order: Vec<NodeId> = leader.into_iter().chain(first.iter().copied()).collect();
        order.extend(later);
        order.sort_by_key(|candidate| way.links.doubts(*candidate));
        let skipped = self.skipped.checked_rem(order.len()).unwrap_or(0);
        order.rotate_left(skipped);
        drop(known);
        order.into_iter().find_map(|candidate| {
            let is_new = candidate != node && self.asked.insert(candidate);
            let link = is_new.then(|| way.links.to(candidate)).flatten();
            link.map(|link| Target::There(candidate, link))
        })
    }
}

impl Target {
    /// Sends a request, and gives what must be told of the answer.
    ///
    /// # Errors
    /// The request, when nobody takes it: nothing was done.
    pub(super) async fn send(
        &self,
        shard: ShardNumber,
        request: Request,
    ) -> Result<Option<Called>, Request> {
        match self {
            Target::Here(requests) => match requests.send(request).await {
                Ok(()) => Ok(None),
                Err(mpsc::error::SendError(request)) => Err(request),
            },
            Target::There(_, link) => link.send(shard, request).await.map(Some),
        }
    }
}

impl Hints {
    /// A node that does not lead `shard` said who does, if it knew.
    pub(super) fn learn(&self, shard: ShardNumber, leader: Option<NodeId>) {
        let before = match leader {
            Some(leader) => self.lock().insert(shard, leader),
            None => self.lock().remove(&shard),
        };
        if before != leader {
            self.news.send_replace(());
        }
    }

    /// A node is not there any more.
    pub(super) fn forget(&self, node: NodeId) {
        self.lock().retain(|_, leader| *leader != node);
    }

    /// Waits until another node is said to lead a shard than before.
    async fn news_of(&self, shard: ShardNumber) {
        let mut news = self.news.subscribe();
        let before = self.of(shard);
        while let Ok(()) = news.changed().await {
            let now = self.of(shard);
            if now.is_some() && now != before {
                return;
            }
        }
    }

    fn of(&self, shard: ShardNumber) -> Option<NodeId> {
        self.lock().get(&shard).copied()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<ShardNumber, NodeId>> {
        // Every change of the map is whole.
        self.leaders.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

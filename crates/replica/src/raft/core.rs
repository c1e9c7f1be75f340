//! One group's Raft on this node, as the rest of the crate sees it.

use std::collections::BTreeSet;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll};
use std::time::Duration;

use engine::command::{Outcome, Proposal};
use model::{GroupId, NodeId, Term};
use openraft::ReadPolicy;
use openraft::async_runtime::WatchReceiver;
use openraft::errors::ClientWriteError;
use openraft::metrics::RaftServerMetrics;
use openraft::raft::ClientWriteResult;
use store::{DiskLevel, Position, StateView, Store};
use thiserror::Error;
use tokio::sync::{oneshot, watch};
use tokio::time::timeout;

use super::answer::Answer;
use super::checkpoint::{Exports, Holds};
use super::config::{Timing, config};
use super::effects::Effects;
use super::log::Log;
use super::network::Network;
use super::network::room::Room;
use super::rest::Rest;
use super::state::{State, UNPOISONED};
use super::{Proposed, Types};
use crate::peer::Peers;

/// How long a read that could not be answered waits for another attempt.
const READ_AGAIN_AFTER: Duration = Duration::from_millis(20);

/// How long a read waits for what the leader says must be applied first.
const READ_WAIT_MAX: Duration = Duration::from_secs(5);

/// One group's Raft. Clones are the same.
#[derive(Clone)]
pub(crate) struct Core {
    group: GroupId,
    raft: openraft::Raft<Types, State>,
    network: Network,
    view: StateView,
    applied: watch::Receiver<Option<Position>>,
    effects: Effects,
    changes: Arc<Mutex<()>>,
    rest: Rest,
}

/// A group's replica on this node does not run, or not any more.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("replica of group {group} has stopped: {reason}")]
pub struct Stopped {
    /// The group.
    pub group: GroupId,
    /// Why.
    pub reason: String,
}

/// This node leads the group, and has applied an entry of its own term: its state is not older
/// than anything that was answered before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Leading {
    /// The term. No other leader ever has it.
    pub(crate) term: Term,
}

/// A proposal that was applied.
#[derive(Debug)]
pub(crate) struct Committed {
    /// Where it stands in the log.
    pub(crate) index: u64,
    /// One for each command.
    pub(crate) outcomes: Vec<Outcome>,
}

/// A proposal was not seen to be applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NotCommitted {
    /// Whether it may be applied nevertheless, now or later.
    pub(crate) unknown: bool,
}

/// A proposal on its way.
pub(crate) struct Pending(oneshot::Receiver<ClientWriteResult<Types>>);

impl Core {
    /// Starts the group's replica from what is on disk.
    ///
    /// # Errors
    /// [`Stopped`] when the disk can't be read or is damaged.
    pub(crate) async fn open(
        group: GroupId,
        node: NodeId,
        timing: Timing,
        store: &Store,
        peers: &Peers,
        exports: &Exports,
    ) -> Result<Self, Stopped> {
        let stopped = |reason: &dyn ToString| Stopped {
            group,
            reason: reason.to_string(),
        };
        let view = store.view(group).map_err(|fault| stopped(&fault))?;
        let changes = Arc::new(Mutex::new(()));
        let effects = Effects::default();
        let state = State::open(store.clone(), group, changes.clone(), effects.clone());
        let (state, applied) = state.map_err(|fault| stopped(&fault))?;
        let log = Log::new(store.clone(), group);
        let config = config(group, timing);
        let network = Network {
            group,
            peers: peers.clone(),
            store: store.clone(),
            holds: Holds::default(),
            exports: exports.clone(),
            room: Room::default(),
        };
        let raft = openraft::Raft::new(node, config, network.clone(), log, state).await;
        Ok(Core {
            group,
            raft: raft.map_err(|fatal| stopped(&fatal))?,
            network,
            view,
            applied,
            effects,
            changes,
            rest: Rest::default(),
        })
    }

    /// The group.
    pub(crate) fn group(&self) -> GroupId {
        self.group
    }

    /// Whether the disk of a replica has room for what is published, as far as it is known here.
    pub(crate) fn has_room(&self, node: NodeId) -> bool {
        match node == self.node() {
            true => self.store().disk_level() == DiskLevel::Normal,
            false => self.network.room.is_in(node),
        }
    }

    pub(super) fn raft(&self) -> &openraft::Raft<Types, State> {
        &self.raft
    }

    pub(super) fn store(&self) -> &Store {
        &self.network.store
    }

    /// The group's state on this node.
    pub(crate) fn view(&self) -> &StateView {
        &self.view
    }

    /// Whether the leader's work rests, and whether it should.
    pub(crate) fn rest(&self) -> &Rest {
        &self.rest
    }

    /// Whether the group exists here: it was founded, or was joined.
    ///
    /// # Errors
    /// [`Stopped`].
    pub(crate) async fn exists(&self) -> Result<bool, Stopped> {
        let exists = self.raft.is_initialized().await;
        exists.map_err(|fatal| self.stopped(fatal))
    }

    /// Founds the group with these voters. Only an empty replica can do it.
    ///
    /// # Errors
    /// [`Stopped`], also when the group exists already.
    pub(crate) async fn found(&self, voters: BTreeSet<NodeId>) -> Result<(), Stopped> {
        let founded = self.raft.initialize(voters).await;
        founded.map_err(|error| self.stopped(error))
    }

    /// Campaigns at once where nobody else can lead, instead of waiting for a sign of life.
    ///
    /// # Errors
    /// [`Stopped`].
    pub(crate) async fn campaign_if_alone(&self) -> Result<(), Stopped> {
        let node = self.node();
        let alone = self.raft.with_raft_state(move |state| {
            let members = state.membership_state.effective();
            is_alone(node, members.membership().get_joint_config())
        });
        if alone.await.map_err(|fatal| self.stopped(fatal))? {
            let campaign = self.raft.trigger().elect(false).await;
            campaign.map_err(|fatal| self.stopped(fatal))?;
        }
        Ok(())
    }

    /// Never campaigns again by itself: the node is about to stop. It votes on.
    pub(crate) fn campaign_no_more(&self) {
        self.raft.runtime_config().elect(false);
    }

    /// Proposes an entry, if this node leads: in `term`, if one is given. Entries are logged in
    /// the order of these calls.
    pub(crate) async fn propose(&self, term: Option<Term>, proposal: Proposal) -> Pending {
        self.propose_shared(term, Arc::new(proposal)).await
    }

    /// As [`Core::propose`], of what the caller keeps.
    pub(crate) async fn propose_shared(
        &self,
        term: Option<Term>,
        proposal: Arc<Proposal>,
    ) -> Pending {
        let (answer, pending) = Answer::new();
        let write = self.raft.write(Proposed(proposal));
        let write = match term {
            Some(term) => write.with_leader(term.0),
            None => write,
        };
        // When Raft has stopped it drops the answer, which `Pending` sees.
        let _ = write.responder(answer).await;
        Pending(pending)
    }

    /// Waits until what this node has applied is not older than anything that any client has
    /// seen so far. Works on any replica: where another node leads, that one is asked.
    ///
    /// # Errors
    /// [`NotRead`].
    pub(crate) async fn read(&self) -> Result<(), NotRead> {
        if self.leads_alone() {
            return Ok(());
        }
        match self.leader() {
            Some(leader) if leader == self.node() => {
                let read = self.raft.ensure_linearizable(ReadPolicy::LeaseRead).await;
                read.map(|_| ()).map_err(|_| NotRead)
            }
            Some(leader) => {
                let read = timeout(READ_WAIT_MAX, self.read_through(leader)).await;
                read.unwrap_or(Err(NotRead))
            }
            None => Err(NotRead),
        }
    }

    /// Whether this node leads, and nobody else can before its leader lease is over.
    pub(crate) async fn holds_lease(&self) -> bool {
        let leads = || self.leader() == Some(self.node());
        let lease = || self.raft.get_read_linearizer(ReadPolicy::LeaseRead);
        self.leads_alone() || leads() && lease().await.is_ok()
    }

    async fn read_through(&self, leader: NodeId) -> Result<(), NotRead> {
        let index = self.network.read_index(leader).await.ok_or(NotRead)?.index;
        let mut applied = self.applied.clone();
        let reached = |at: &Option<Position>| at.is_some_and(|at| at.index >= index);
        let reached = applied.wait_for(reached).await;
        reached.map(|_| ()).map_err(|_| NotRead)
    }

    /// This node.
    pub(crate) fn node(&self) -> NodeId {
        *self.raft.node_id()
    }

    /// Who leads the group, as far as this node knows.
    pub(crate) fn leader(&self) -> Option<NodeId> {
        self.raft.server_metrics().borrow_watched().current_leader
    }

    /// Waits until this node hears of another leader, or of none. Never ends when the replica has
    /// stopped.
    pub(crate) async fn leader_changes(&self) {
        let mut server = self.raft.server_metrics();
        let before = server.borrow_watched().current_leader;
        while server.borrow_watched().current_leader == before {
            if server.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }

    /// Waits until this node does not lead, as far as it knows, or the replica has stopped.
    pub(crate) async fn leads_no_more(&self) {
        let node = self.node();
        let mut server = self.raft.server_metrics();
        while server.borrow_watched().current_leader == Some(node) {
            if server.changed().await.is_err() {
                return;
            }
        }
    }

    /// Whether nothing can be committed but by this node, and it has applied what was answered
    /// before it led. What it answered since, it had applied.
    fn leads_alone(&self) -> bool {
        let server = self.raft.server_metrics();
        let server = server.borrow_watched();
        let term = server.vote.leader_id.term;
        let applied = *self.applied.borrow();
        server.state.is_leader()
            && is_alone(server.id, server.membership_config.get_joint_config())
            && applied.is_some_and(|applied| applied.term == term)
    }

    /// As [`Core::read`], but tries until it can be known. `None` when the replica has stopped.
    pub(crate) async fn caught_up(&self) -> Option<()> {
        let mut server = self.raft.server_metrics();
        loop {
            if self.read().await.is_ok() {
                return Some(());
            }
            // A new leader is refused until a majority has heard of it, which nothing tells.
            if let Ok(Err(_)) = timeout(READ_AGAIN_AFTER, server.changed()).await {
                return None;
            }
        }
    }

    /// The term that this node is in.
    pub(crate) fn term(&self) -> Term {
        Term(
            self.raft
                .server_metrics()
                .borrow_watched()
                .vote
                .leader_id
                .term,
        )
    }

    /// Who votes, as far as this node knows.
    pub(crate) fn voters(&self) -> BTreeSet<NodeId> {
        let server = self.raft.server_metrics();
        let server = server.borrow_watched();
        server.membership_config.voter_ids().collect()
    }

    /// Who leads, from now on.
    pub(crate) fn leadership(&self) -> Leadership {
        Leadership {
            node: self.node(),
            server: self.raft.server_metrics(),
            applied: self.applied.clone(),
        }
    }

    /// While this is held, the group's state does not change: entries are decided, but not seen.
    /// To be held for as long as it takes to read what must fit together.
    pub(crate) fn still(&self) -> MutexGuard<'_, ()> {
        self.changes.lock().expect(UNPOISONED)
    }

    /// How far this node's state has come.
    pub(crate) fn applied(&self) -> watch::Receiver<Option<Position>> {
        self.applied.clone()
    }

    /// What applied changes of the catalogue mean for the shards; of the control group only.
    pub(crate) fn effects(&self) -> Effects {
        self.effects.clone()
    }

    /// Cuts the log behind the last checkpoint, and asks for the next one. A leader keeps what
    /// other replicas lack, if that is not more than `lag_max` entries.
    ///
    /// # Errors
    /// [`Stopped`].
    pub(crate) async fn cut_log(&self, lag_max: u64) -> Result<(), Stopped> {
        let cut = self
            .raft
            .metrics()
            .borrow_watched()
            .purged
            .map(|at| at.index);
        let applied = self.applied.borrow().map(|at| at.index);
        if cut == applied || model::sabotage!("log-never-cut") {
            return Ok(());
        }
        if let Some(checkpoint) = self.raft.watch_snapshot_progress().get() {
            let through = self.cut_through(checkpoint.index, lag_max);
            let purged = self.raft.trigger().purge_log(through).await;
            purged.map_err(|fatal| self.stopped(fatal))?;
        }
        let asked = self.raft.trigger().snapshot().await;
        asked.map_err(|fatal| self.stopped(fatal))
    }

    /// Through which entry the log may be cut when `checkpoint` is the last one.
    fn cut_through(&self, checkpoint: u64, lag_max: u64) -> u64 {
        if self.store().disk_level() != DiskLevel::Normal {
            return checkpoint;
        }
        let metrics = self.raft.metrics();
        let metrics = metrics.borrow_watched();
        let lowest = metrics.purged.as_ref().map_or(0, |at| at.index);
        let lowest = lowest.max(checkpoint.saturating_sub(lag_max));
        let others = metrics
            .replication
            .iter()
            .flat_map(|others| others.values());
        let others = others.map(|matching| matching.as_ref().map_or(0, |at| at.index));
        let lagging = others.filter(|index| (lowest..checkpoint).contains(index));
        let held = self.network.holds.lowest();
        lagging.chain(held).fold(checkpoint, u64::min)
    }

    /// Stops the replica. What is proposed but not applied stays unknown.
    pub(crate) async fn shutdown(&self) {
        // It fails only if the core panicked, and then it is stopped as well.
        let _ = self.raft.shutdown().await;
    }

    /// Waits until the replica stops, and says why; a shutdown is one reason.
    pub(crate) async fn until_stopped(&self) -> Stopped {
        let mut server = self.raft.server_metrics();
        while server.changed().await.is_ok() {}
        let metrics = self.raft.metrics();
        let running = metrics.borrow_watched().running_state.clone();
        match running {
            Ok(()) => self.stopped("shut down"),
            Err(fatal) => self.stopped(fatal),
        }
    }

    /// The replica has stopped, or must be stopped, for this reason.
    pub(crate) fn stopped(&self, reason: impl ToString) -> Stopped {
        Stopped {
            group: self.group,
            reason: reason.to_string(),
        }
    }
}

/// Whether `node` is the only voter of a configuration.
fn is_alone(node: NodeId, voters: &[BTreeSet<NodeId>]) -> bool {
    matches!(voters, [voters] if voters.len() == 1 && voters.contains(&node))
}

/// *Retry*: the group has no leader, or this node hears nothing of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("it can't be known now whether this node's state is up to date")]
pub(crate) struct NotRead;

/// Watches whether this node leads.
pub(crate) struct Leadership {
    node: NodeId,
    server: openraft::alias::WatchReceiverOf<Types, RaftServerMetrics<Types>>,
    applied: watch::Receiver<Option<Position>>,
}

impl Leadership {
    /// Waits until this node leads in a term after `last`, and has applied an entry of it.
    /// `None` when the replica has stopped.
    pub(crate) async fn begins(&mut self, last: Option<Term>) -> Option<Leading> {
        loop {
            match self.term().filter(|term| Some(*term) > last) {
                None => self.server.changed().await.ok()?,
                Some(term) => {
                    let applied = applied_term(&mut self.applied, term);
                    let applied = tokio::select! {
                        biased;
                        changed = self.server.changed() => changed.map(|()| false).ok()?,
                        applied = applied => applied.map(|()| true)?,
                    };
                    if applied && self.term() == Some(term) {
                        return Some(Leading { term });
                    }
                }
            }
        }
    }

    /// Waits until this node does not lead in `term` any more, or the replica has stopped.
    pub(crate) async fn ends(&mut self, term: Term) {
        while self.term() == Some(term) {
            if self.server.changed().await.is_err() {
                return;
            }
        }
    }

    /// Whether this node leads in `term`, according to Raft.
    pub(crate) fn leads_in(&self, term: Term) -> bool {
        self.term() == Some(term)
    }

    /// The term in which this node leads, according to Raft.
    fn term(&self) -> Option<Term> {
        let server = self.server.borrow_watched();
        let leads = server.state.is_leader() && server.current_leader == Some(self.node);
        leads.then_some(Term(server.vote.leader_id.term))
    }
}

/// Waits until an entry of `term` is applied. `None` when the replica has stopped.
async fn applied_term(applied: &mut watch::Receiver<Option<Position>>, term: Term) -> Option<()> {
    let of_term = |at: &Option<Position>| at.is_some_and(|at| at.term >= term.0);
    applied.wait_for(of_term).await.ok().map(|_| ())
}

impl Future for Pending {
    type Output = Result<Committed, NotCommitted>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.0)
            .poll(context)
            .map(|answer| match answer {
                Ok(Ok(applied)) => Ok(Committed {
                    index: applied.log_id.index,
                    outcomes: applied.data,
                }),
                // openraft promises: refused before it was appended.
                Ok(Err(ClientWriteError::ForwardToLeader(_))) => {
                    Err(NotCommitted { unknown: false })
                }
                Ok(Err(_)) | Err(_) => Err(NotCommitted { unknown: true }),
            })
    }
}

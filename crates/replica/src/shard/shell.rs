//! One leadership: carries out what the leader decides, until the leadership is over.
//!
//! - [`input`]: what happened, as the leader hears it.
//! - [`output`]: what it decided, as it is carried out.
//! - [`lease`]: whether it may decide anything now.

mod input;
mod lease;
mod output;

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use engine::Fault;
use engine::command::Proposal;
use engine::control;
use engine::dispatch::{Input, Leader, ProposalId, QuestionId};
use engine::registry::{self, Registries};
use engine::table::staged::StagedKey;
use futures::FutureExt;
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use model::ShardNumber;
use store::{StateView, Store};
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, Sleep, sleep_until};

use self::lease::LeaderLease;
use super::forward::{Dispatched, ForwardRequest};
use super::request::Request;
use super::shards::{Lives, Shards};
use super::waiting::{Callers, Sessions};
use crate::catalogue::{self, CatalogueLease};
use crate::clock::Clock;
use crate::metrics::Counts;
use crate::raft::{Core, Leadership, Leading, NotCommitted, Pending};
use crate::registry::RegistryClient;
use crate::stopping::Stopping;

/// What a leadership works with, and what outlives it.
pub(super) struct Surroundings {
    pub(super) shard: ShardNumber,
    pub(super) core: Core,
    pub(super) registry: RegistryClient,
    pub(super) store: Store,
    pub(super) clock: Clock,
    pub(super) counts: Counts,
    /// The control group's state.
    pub(super) catalogue: StateView,
    /// Whether this node's copy of it may be relied on.
    pub(super) lease: CatalogueLease,
    /// What is called.
    pub(super) requests: mpsc::Receiver<Request>,
    /// What was called after this node was elected and before it served.
    pub(super) held: VecDeque<Request>,
    /// The other shards.
    pub(super) shards: Shards,
    /// Where dead letters go.
    pub(super) forwards: mpsc::Sender<ForwardRequest>,
    /// Whether calls are taken.
    pub(super) serving: watch::Sender<bool>,
    /// Whether the node shuts down.
    pub(super) stopping: Stopping,
    /// How long a frontend that is well takes to open a session again whose way was lost, at most.
    pub(super) back_within: Duration,
    /// The present life of each node, with which all sessions of earlier ones are over.
    pub(super) lives: watch::Receiver<Lives>,
}

/// A question to a registry group on its way, and its answer if there is one.
type Question = BoxFuture<'static, (QuestionId, Option<registry::Reply>)>;

/// How far a copy is that waits for the catalogue.
#[derive(Debug)]
enum Comparing {
    /// The catalogue of this node is as new as it must be; or not, and somebody must ask again.
    Read(StagedKey, bool),
    /// What the shard lacked of it is applied.
    Logged(StagedKey),
}

/// An entry on its way.
struct Proposed {
    proposal: ProposalId,
    /// What it says, to be said again where the leader may not write for a moment.
    entry: Arc<Proposal>,
    pending: Pending,
    /// Whether its fate is that it was not taken.
    refused: bool,
}

/// Why a leadership ended.
#[derive(Debug)]
pub(super) enum End {
    /// Another term has begun, or the replica has stopped.
    Lost,
    /// A proposal was not applied, as far as it is known.
    NotCommitted,
    /// The node shuts down, and everyone was answered.
    Closed,
    /// The state can't be read.
    Fault(Fault),
}

impl From<Fault> for End {
    fn from(fault: Fault) -> Self {
        End::Fault(fault)
    }
}

/// One leadership of one shard.
pub(super) struct Shell<'s> {
    around: &'s mut Surroundings,
    leading: Leading,
    leader: Leader,
    callers: Callers,
    sessions: Sessions,
    /// Entries that are proposed, in order.
    proposed: VecDeque<Proposed>,
    /// Since when this leader may not write, as far as it knows.
    refused: Option<Instant>,
    lease: LeaderLease,
    /// Dead letters that wait for room in `forwards`.
    letters: VecDeque<ForwardRequest>,
    /// Dead letters whose answer is awaited.
    dispatched: FuturesUnordered<Dispatched>,
    /// Questions to registry groups whose answer is awaited.
    questions: FuturesUnordered<Question>,
    /// What is being said to other shards.
    tellings: FuturesUnordered<BoxFuture<'static, ()>>,
    /// Copies that wait for the catalogue.
    comparing: FuturesUnordered<BoxFuture<'static, Comparing>>,
    alarm: Pin<Box<Sleep>>,
    /// Whether `alarm` stands for a wish of the leader.
    alarmed: bool,
    /// Whether the last call has come.
    closed: bool,
    /// Whether the work should rest, since the leadership is being handed over.
    rest: watch::Receiver<usize>,
    /// Whether a proposal has met a fate that its callers did not hear of: it was applied and the
    /// leader was not told yet, or nobody knows.
    unheard: bool,
}

impl<'s> Shell<'s> {
    /// Takes up a leadership.
    ///
    /// # Errors
    /// [`Fault`] when the state can't be read.
    pub(super) fn new(around: &'s mut Surroundings, leading: Leading) -> Result<Self, Fault> {
        let now = around.clock.monotonic();
        // Before anything leads, the catalogue is current, and its first entry is this row.
        let cluster = control::read::cluster(&around.catalogue)?;
        let cluster = cluster.ok_or_else(|| Fault::Missing("the row of the cluster".into()))?;
        let registries = Registries::new(cluster.registries);
        let (shard, view) = (around.shard, around.core.view());
        let leader = Leader::new(shard, registries, leading.term, now, view)?;
        let sessions = Sessions::new(around.shard, around.back_within);
        let rest = around.core.rest().asked();
        Ok(Shell {
            around,
            leading,
            leader,
            callers: Callers::default(),
            sessions,
            proposed: VecDeque::new(),
            refused: None,
            lease: LeaderLease::default(),
            letters: VecDeque::new(),
            dispatched: FuturesUnordered::new(),
            questions: FuturesUnordered::new(),
            tellings: FuturesUnordered::new(),
            comparing: FuturesUnordered::new(),
            alarm: Box::pin(sleep_until(Instant::now())),
            alarmed: false,
            closed: false,
            rest,
            unheard: false,
        })
    }

    /// Works until the leadership is over. Everyone who waits hears of it: that nothing was done if
    /// that is certain, as where a leader refused to write, and else that nobody knows.
    pub(super) async fn run(mut self, leadership: &mut Leadership) -> End {
        let (Ok(end) | Err(end)) = self.work(leadership).await;
        let over = matches!(end, End::Lost | End::NotCommitted);
        if over && self.nothing_is_open() {
            // Whoever is refused now must not take this leadership for the next one.
            self.around.serving.send_replace(false);
            self.callers.refuse();
        }
        end
    }

    /// Whether it is certain that nothing of what callers wait for was done or will be.
    fn nothing_is_open(&mut self) -> bool {
        let refused = |it: &mut Proposed| {
            let mut fate = || (&mut it.pending).now_or_never();
            it.refused || matches!(fate(), Some(Err(NotCommitted { unknown: false })))
        };
        !self.unheard && self.proposed.iter_mut().all(refused)
    }

    async fn work(&mut self, leadership: &mut Leadership) -> Result<End, End> {
        let mut inputs = self.first_inputs()?;
        loop {
            self.act(inputs).await?;
            self.unheard = false;
            let serves = |serving: &mut bool| !std::mem::replace(serving, true);
            self.around.serving.send_if_modified(serves);
            let is_idle = self.callers.is_empty() && self.proposed.is_empty();
            self.around.core.rest().say(is_idle && self.should_rest());
            if self.closed && self.callers.is_empty() {
                return Ok(End::Closed);
            }
            inputs = tokio::select! {
                biased;
                () = leadership.ends(self.leading.term) => return Ok(End::Lost),
                inputs = self.hear() => inputs?,
            };
        }
    }

    fn should_rest(&self) -> bool {
        *self.rest.borrow() > 0
    }

    /// What the catalogue has and the shard lacks, before anyone can call.
    fn first_inputs(&mut self) -> Result<Vec<Input>, Fault> {
        let missing = catalogue::missing(&self.around.catalogue, self.around.core.view())?;
        let missing = missing.into_iter().map(|command| self.unasked(command));
        let mut inputs: Vec<Input> = std::iter::once(Input::Tick).chain(missing).collect();
        inputs.extend(self.ended_with_their_process());
        Ok(inputs)
    }

    /// Hands inputs to the leader and carries out what it decides, and what it decides on hearing
    /// that somebody is not there any more.
    async fn act(&mut self, mut inputs: Vec<Input>) -> Result<(), Fault> {
        while !inputs.is_empty() {
            let now = self.around.clock.monotonic();
            let outputs = {
                let _still = self.around.core.still();
                self.leader.steps(now, self.around.core.view(), inputs)?
            };
            for output in outputs {
                self.count(&output);
                self.carry_out(output).await;
            }
            inputs = self.sessions.deserted();
        }
        Ok(())
    }
}

impl Drop for Shell<'_> {
    fn drop(&mut self) {
        // Callers and sessions go after this: whoever is refused now may wait for the next
        // leadership, and must not take this one for it.
        self.around.serving.send_replace(false);
        self.around.core.rest().say(false);
    }
}

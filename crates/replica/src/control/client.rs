//! The handle to the control group: whichever node leads it, callers use the one on their own.

use std::time::Duration;

use engine::Fault;
use engine::control::read::Seen;
use engine::control::{Cluster, Command, Reply, read};
use model::{Boot, FormatLevel, NodeId};
use store::StateView;
use thiserror::Error;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::{Instant, sleep_until, timeout_at};

use super::reports::Survey;
use super::request::{Answer, Call, Led, Renewal, Renewed, Request};
use crate::StartError;
use crate::Unavailable;
use crate::catalogue::CatalogueLease;
use crate::peer::Peers;
use crate::raft::Core;

/// No call waits longer for a leader and its answer. A change waits for the leases of nodes that
/// are gone, which takes ten seconds.
const ANSWER_MAX: Duration = Duration::from_secs(15);
/// The pause before a leader that is not known, or is not ready, is looked for again.
const LOOK_AGAIN_AFTER: Duration = Duration::from_millis(20);

/// The control group, through this node. Cheap to clone.
#[derive(Clone)]
pub struct ControlClient {
    core: Core,
    /// The leader's task on this node.
    requests: mpsc::Sender<Request>,
    peers: Peers,
    lease: CatalogueLease,
    node: NodeId,
}

impl ControlClient {
    pub(super) fn new(
        core: Core,
        requests: mpsc::Sender<Request>,
        peers: Peers,
        lease: CatalogueLease,
    ) -> Self {
        ControlClient {
            core,
            requests,
            node: peers.settings().node,
            peers,
            lease,
        }
    }

    pub(crate) fn core(&self) -> &Core {
        &self.core
    }

    /// Carries a command out, and answers when every node that may rely on its catalogue has
    /// applied it, and every shard's leader has put what follows from it in its log, ahead of any
    /// later publish.
    ///
    /// # Errors
    /// [`Unavailable`].
    pub async fn propose(&self, command: Command) -> Result<Reply, Unavailable> {
        match self.call(Call::Change(command)).await? {
            Answer::Changed(reply) => Ok(reply),
            _ => Err(Unavailable::UNKNOWN),
        }
    }

    /// The catalogue, not older than anything that was answered before this call, on any node; and
    /// with nothing in it that another node might not see yet. For what concerns many names.
    ///
    /// # Errors
    /// [`Unavailable`].
    pub async fn read(&self) -> Result<&StateView, Unavailable> {
        let Answer::Index { index, .. } = self.call(Call::Barrier).await? else {
            return Err(Unavailable::NOT_DONE);
        };
        self.applied_up_to(index).await
    }

    /// What the catalogue says of one name, as `look` finds it there, with the same promises as
    /// [`ControlClient::read`]; but it waits for no change of other names.
    ///
    /// # Errors
    /// [`LookError`].
    pub async fn look_up<T>(
        &self,
        look: impl FnOnce(&StateView) -> Result<Seen<T>, Fault>,
    ) -> Result<Option<T>, LookError> {
        let Answer::Index { index, settled } = self.call(Call::ReadIndex).await? else {
            return Err(Unavailable::NOT_DONE.into());
        };
        let seen = look(self.applied_up_to(index).await?)?;
        self.until_settled(seen.since, settled).await?;
        Ok(seen.found)
    }

    /// What this node's copy says of one name, as `look` finds it there. It lacks nothing that any
    /// node has answered, and the leader is asked only where the copy has what another node might
    /// not have yet.
    ///
    /// # Errors
    /// [`LookError`], also while the node has no catalogue lease.
    pub async fn resolve<T>(
        &self,
        look: impl FnOnce(&StateView) -> Result<Seen<T>, Fault>,
    ) -> Result<Option<T>, LookError> {
        // What is settled is asked first: what is seen then may be newer, but is no older.
        let settled = self.lease.settled();
        let seen = look(self.current()?)?;
        self.until_settled(seen.since, settled).await?;
        Ok(seen.found)
    }

    /// Waits until every change up to the entry `since` is on every node that may be relied on,
    /// where that is known up to `settled`.
    async fn until_settled(&self, since: u64, settled: u64) -> Result<(), Unavailable> {
        if since <= settled || model::sabotage!("resolves-what-others-lack") {
            return Ok(());
        }
        self.call(Call::Settled(since)).await.map(|_| ())
    }

    /// Up to which entry every change is known to be on every node that may be relied on, as far
    /// as this node has heard.
    #[must_use]
    pub fn settled(&self) -> u64 {
        self.lease.settled()
    }

    async fn applied_up_to(&self, index: u64) -> Result<&StateView, Unavailable> {
        let mut applied = self.core.applied();
        let reached = applied.wait_for(|at| at.map_or(0, |at| at.index) >= index);
        match timeout_at(Instant::now() + ANSWER_MAX, reached).await {
            Ok(Ok(_)) => Ok(self.core.view()),
            _ => Err(Unavailable::NOT_DONE),
        }
    }

    /// What was decided when the cluster was founded. On a node that has just joined it waits
    /// until that is known here.
    ///
    /// # Errors
    /// [`StartError`] when the catalogue can't be read, or the replica has stopped.
    pub async fn cluster(&self) -> Result<Cluster, StartError> {
        let mut applied = self.core.applied();
        loop {
            applied.borrow_and_update();
            if let Some(cluster) = read::cluster(self.core.view())? {
                return Ok(cluster);
            }
            if applied.changed().await.is_err() {
                return Err(self.core.until_stopped().await.into());
            }
        }
    }

    /// The catalogue as this node has it now, which lacks nothing that any node has answered.
    ///
    /// # Errors
    /// [`Unavailable`] while the node has no catalogue lease.
    pub fn current(&self) -> Result<&StateView, Unavailable> {
        match self.lease.lasts() {
            true => Ok(self.core.view()),
            false => Err(Unavailable::NOT_DONE),
        }
    }

    /// The catalogue as this node has it now, perhaps behind others.
    #[must_use]
    pub fn view(&self) -> &StateView {
        self.core.view()
    }

    /// The index of the last entry that this node's catalogue has applied, and its changes.
    #[must_use]
    pub fn applied(&self) -> watch::Receiver<Option<store::Position>> {
        self.core.applied()
    }

    /// Asks for this node's catalogue lease, saying up to which entry it is complete, and what it
    /// leads.
    pub(crate) async fn renew(
        &self,
        boot: Boot,
        complete: u64,
        led: Vec<Led>,
    ) -> Result<Renewed, Unavailable> {
        let renewal = Renewal {
            node: self.node,
            boot,
            knows: FormatLevel::KNOWN,
            complete,
            led,
        };
        match self.call(Call::Renew(renewal)).await? {
            Answer::Renewed(renewed) => Ok(renewed),
            _ => Err(Unavailable::NOT_DONE),
        }
    }

    /// What the leader hears from the nodes: who leads what, who votes where, who is silent.
    ///
    /// # Errors
    /// [`Unavailable`].
    pub async fn survey(&self) -> Result<Survey, Unavailable> {
        match self.call(Call::Survey).await? {
            Answer::Survey(survey) => Ok(survey),
            _ => Err(Unavailable::NOT_DONE),
        }
    }

    /// Gives the lease of this life of the node up, so that no change waits for it, and answers
    /// when the log says so. Nobody else can write that down where this node is the leader.
    pub(crate) async fn release(&self, boot: Boot) {
        if self.core.leader() != Some(self.node) {
            // Without an answer the lease runs out by itself.
            let _ = self.call(Call::Release(self.node, boot)).await;
        }
    }

    /// Asks the leader, wherever it is. What was certainly not done is asked again, until it takes
    /// too long; and so is what changes nothing, whatever became of it.
    async fn call(&self, call: Call) -> Result<Answer, Unavailable> {
        let until = Instant::now() + ANSWER_MAX;
        let mut hint = None;
        loop {
            let refused = match hint.take().or_else(|| self.core.leader()) {
                Some(leader) => match self.ask(leader, &call, until).await {
                    Ok(answer) => return Ok(answer),
                    Err(refused) if refused.why.unknown && !call.may_repeat() => {
                        return Err(refused.why);
                    }
                    Err(refused) => refused,
                },
                None => Refused::not_done(None),
            };
            hint = refused.leader;
            let again = Instant::now() + LOOK_AGAIN_AFTER;
            if again >= until {
                return Err(refused.why);
            }
            sleep_until(again).await;
        }
    }

    async fn ask(&self, leader: NodeId, call: &Call, until: Instant) -> Result<Answer, Refused> {
        let unknown = |_| Refused::unknown();
        if leader != self.node {
            let answer = super::remote::call(&self.peers, leader, call, until);
            return timeout_at(until, answer).await.map_err(unknown)?;
        }
        let answer = timeout_at(until, self.ask_here(call.clone()));
        let answer = answer.await.map_err(unknown)?;
        answer.map_err(|why| Refused { why, leader: None })
    }

    /// How long the catalogue lease of another node lasts; `None` when it does not say.
    pub(crate) async fn lease_left_at(&self, node: NodeId, until: Instant) -> Option<Duration> {
        match super::remote::call(&self.peers, node, &Call::LeaseLeft, until).await {
            Ok(Answer::LeaseLeft(left)) => Some(left),
            _ => None,
        }
    }

    /// Asks the leader's task on this node.
    pub(super) async fn ask_here(&self, call: Call) -> Result<Answer, Unavailable> {
        if call == Call::LeaseLeft {
            return Ok(Answer::LeaseLeft(self.lease.left()));
        }
        let (answer, answered) = oneshot::channel();
        let sent = self.requests.send(Request { call, answer }).await;
        sent.map_err(|_| Unavailable::NOT_DONE)?;
        answered.await.map_err(|_| Unavailable::UNKNOWN)?
    }

    /// The node that leads the group, as far as this one knows.
    #[must_use]
    pub fn leader(&self) -> Option<NodeId> {
        self.core.leader()
    }
}

/// What the catalogue says of a name can't be known now.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum LookError {
    /// *Retry*: the control group does not answer, or this node has no lease.
    #[error(transparent)]
    Unavailable(#[from] Unavailable),
    /// The catalogue can't be read.
    #[error(transparent)]
    Fault(#[from] Fault),
}

/// The leader did not answer, or it was not the leader.
pub(super) struct Refused {
    pub(super) why: Unavailable,
    /// Who leads, as far as the asked node knows.
    pub(super) leader: Option<NodeId>,
}

impl Refused {
    pub(super) fn not_done(leader: Option<NodeId>) -> Self {
        Refused {
            why: Unavailable::NOT_DONE,
            leader,
        }
    }

    pub(super) fn unknown() -> Self {
        Refused {
            why: Unavailable::UNKNOWN,
            leader: None,
        }
    }
}

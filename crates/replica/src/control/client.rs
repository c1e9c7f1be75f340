//! The handle to the control group: whichever node leads it, callers use the one on their own.

use std::time::Duration;

use engine::control::{Cluster, Command, Reply, read};
use model::NodeId;
use store::StateView;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::{Instant, sleep_until, timeout_at};

use super::reports::Survey;
use super::request::{Answer, Call, Led, Renewal, Request};
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
    /// Which life of the node this is.
    boot: u64,
}

impl ControlClient {
    pub(super) fn new(
        core: Core,
        requests: mpsc::Sender<Request>,
        peers: Peers,
        lease: CatalogueLease,
        boot: u64,
    ) -> Self {
        ControlClient {
            core,
            requests,
            node: peers.settings().node,
            peers,
            lease,
            boot,
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

    /// The catalogue, not older than anything that was answered before this call, on any node.
    ///
    /// # Errors
    /// [`Unavailable`].
    pub async fn read(&self) -> Result<&StateView, Unavailable> {
        let Answer::Index(index) = self.call(Call::Barrier).await? else {
            return Err(Unavailable::NOT_DONE);
        };
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
    /// leads: how long the lease lasts from the moment before this call, or `None` when it is not
    /// granted now.
    pub(crate) async fn renew(
        &self,
        complete: u64,
        led: Vec<Led>,
    ) -> Result<Option<Duration>, Unavailable> {
        let renewal = Renewal {
            node: self.node,
            boot: self.boot,
            complete,
            led,
        };
        match self.call(Call::Renew(renewal)).await? {
            Answer::Lease(lease) => Ok(lease),
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

    /// Gives this node's catalogue lease up, so that no change waits for it. The leader of the
    /// control group need not: who leads next can't know.
    pub(crate) async fn release(&self) {
        if self.core.leader() != Some(self.node) {
            // Without an answer the lease runs out by itself.
            let _ = self.call(Call::Release(self.node, self.boot)).await;
        }
    }

    /// Asks the leader, wherever it is. What was certainly not done is asked again, until it takes
    /// too long.
    async fn call(&self, call: Call) -> Result<Answer, Unavailable> {
        let until = Instant::now() + ANSWER_MAX;
        let mut hint = None;
        loop {
            let refused = match hint.take().or_else(|| self.core.leader()) {
                Some(leader) => match self.ask(leader, &call, until).await {
                    Ok(answer) => return Ok(answer),
                    Err(refused) if refused.why.unknown => return Err(refused.why),
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

    /// Asks the leader's task on this node.
    pub(super) async fn ask_here(&self, call: Call) -> Result<Answer, Unavailable> {
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

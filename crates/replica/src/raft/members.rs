//! Who belongs to a group, and who shall lead it.

use std::collections::BTreeSet;
use std::time::Duration;

use model::{GroupId, NodeId};
use openraft::async_runtime::WatchReceiver;
use openraft::impls::EmptyNode;
use openraft::{ChangeMembers, Instant as _};
use thiserror::Error;
use tokio::time::timeout;

use super::{Core, Stopped};

/// Entries that the next leader may lack when the present one hands over to it. They are on their
/// way, and it waits for them before it campaigns.
const HANDED_OVER_LAG_MAX: u64 = 64;

/// How long the work of a leader may take to rest before its leadership is handed over: a commit
/// between distant regions, on a machine that is busy.
const REST_MAX: Duration = Duration::from_secs(1);

/// The same for the control group, whose changes are answered when all nodes have them. Reads of
/// the catalogue go on meanwhile.
const CONTROL_REST_MAX: Duration = Duration::from_secs(2);

/// A node that was heard of so lately is there. Heartbeats come several times in that.
const HEARD_WITHIN: Duration = Duration::from_secs(1);

/// Who belongs to a group.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Members {
    /// The voters: one set, or the old and the new one while the new replaces the old.
    pub(crate) voters: Vec<BTreeSet<NodeId>>,
    /// Those that follow without a vote.
    pub(crate) learners: BTreeSet<NodeId>,
}

/// *Unknown*: the group's members were not seen to change.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("the members were not changed: {0}")]
pub(crate) struct NotChanged(String);

impl Core {
    /// Who belongs to the group, by the last entry of this node's log that says so.
    pub(crate) fn members(&self) -> Members {
        let server = self.raft().server_metrics();
        let server = server.borrow_watched();
        let members = server.membership_config.membership();
        Members {
            voters: members.get_joint_config().clone(),
            learners: members.learner_ids().collect(),
        }
    }

    /// Whether exactly these vote, and that is decided: if this node is lost now, those who voted
    /// before are not needed any more.
    pub(crate) fn is_decided(&self, voters: &BTreeSet<NodeId>) -> bool {
        let applied = self.applied().borrow().map_or(0, |at| at.index);
        let server = self.raft().server_metrics();
        let server = server.borrow_watched();
        let members = &server.membership_config;
        let said_at = members.log_id().as_ref().map_or(0, |at| at.index);
        said_at <= applied && *members.get_joint_config() == [voters.clone()]
    }

    /// How many entries a node lacks of this leader's log. `None` when this node does not lead, or
    /// has not heard of the other one yet.
    pub(crate) fn lag(&self, node: NodeId) -> Option<u64> {
        let metrics = self.raft().metrics();
        let metrics = metrics.borrow_watched();
        let matching = metrics.replication.as_ref()?.get(&node)?.as_ref()?;
        Some(metrics.last_log_index?.saturating_sub(matching.index))
    }

    /// Which entries have not reached this node's disk yet: the last that did, if any is missing
    /// behind it.
    pub(crate) fn unwritten_after(&self) -> Option<u64> {
        let taken = self.raft().metrics().borrow_watched().last_log_index?;
        let written = self.raft().watch_log_progress().get();
        let written = written
            .and_then(|at| at.last_log_id)
            .map_or(0, |at| at.index);
        (written < taken).then_some(written)
    }

    /// Lets a node follow without a vote.
    ///
    /// # Errors
    /// [`NotChanged`].
    pub(crate) async fn add_learner(&self, node: NodeId) -> Result<(), NotChanged> {
        let added = self.raft().add_learner(node, EmptyNode::new(), false).await;
        added.map(|_| ()).map_err(not_changed)
    }

    /// Replaces the voters. Each new one must be a learner, and close to the tip; old ones stay as
    /// learners. Repeated after a change that stopped half-way, it completes that one.
    ///
    /// # Errors
    /// [`NotChanged`].
    pub(crate) async fn change_voters(&self, voters: BTreeSet<NodeId>) -> Result<(), NotChanged> {
        let changed = self.raft().change_membership(voters, true).await;
        changed.map(|_| ()).map_err(not_changed)
    }

    /// Lets a learner go.
    ///
    /// # Errors
    /// [`NotChanged`].
    pub(crate) async fn remove_learner(&self, node: NodeId) -> Result<(), NotChanged> {
        let change = ChangeMembers::RemoveNodes(BTreeSet::from([node]));
        let removed = self.raft().change_membership(change, true).await;
        removed.map(|_| ()).map_err(not_changed)
    }

    /// Whether a node answers, and has all but the newest entries, so that it could take over at
    /// once. In a group where nothing happens, a node that is gone lacks nothing either.
    pub(crate) fn is_at_tip(&self, node: NodeId) -> bool {
        self.is_heard(node) && self.lag(node).is_some_and(|lag| lag <= HANDED_OVER_LAG_MAX)
    }

    fn is_heard(&self, node: NodeId) -> bool {
        let metrics = self.raft().metrics();
        let metrics = metrics.borrow_watched();
        let heard = metrics
            .heartbeat
            .as_ref()
            .and_then(|heard| heard.get(&node).copied());
        heard
            .flatten()
            .is_some_and(|at| at.elapsed() <= HEARD_WITHIN)
    }

    /// Hands the leadership over to another voter, and answers whether that one leads within
    /// `patience`. The leader's work rests first.
    ///
    /// From the request on, this leader takes no more writes, and nothing gives it back its
    /// place: if the other one does not take over, the group waits for an election. So a node
    /// that is not at the tip is not asked.
    ///
    /// # Errors
    /// [`Stopped`].
    pub(crate) async fn transfer_to(
        &self,
        node: NodeId,
        patience: Duration,
    ) -> Result<bool, Stopped> {
        if self.leader() != Some(self.node()) || !self.is_at_tip(node) {
            return Ok(false);
        }
        let _rest = match self.group() {
            GroupId::Shard(_) => self.rest().begin(REST_MAX).await,
            GroupId::Control => self.rest().begin(CONTROL_REST_MAX).await,
            GroupId::Registry(_) => self.rest().begin_of_callers(REST_MAX).await,
        };
        let asked = self.raft().trigger().transfer_leader(node).await;
        asked.map_err(|fatal| self.stopped(fatal))?;
        let mut server = self.raft().server_metrics();
        let taken_over = async {
            while server.borrow_watched().current_leader != Some(node) {
                if server.changed().await.is_err() {
                    return false;
                }
            }
            true
        };
        Ok(timeout(patience, taken_over).await.unwrap_or(false))
    }

    /// Ends this node's leadership, so that the next one has another term: another voter is asked to
    /// take over, and whether it does or not, this node's heartbeats are over. Nothing happens where
    /// there is no other.
    ///
    /// # Errors
    /// [`Stopped`].
    pub(crate) async fn abdicate(&self) -> Result<(), Stopped> {
        let voters = self.voters();
        let others = || voters.iter().copied().filter(|node| *node != self.node());
        let ready = others().find(|node| self.is_at_tip(*node));
        let Some(heir) = ready.or_else(|| others().next()) else {
            return Ok(());
        };
        let asked = self.raft().trigger().transfer_leader(heir).await;
        asked.map_err(|fatal| self.stopped(fatal))
    }
}

fn not_changed(why: impl ToString) -> NotChanged {
    NotChanged(why.to_string())
}

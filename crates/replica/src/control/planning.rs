//! Where groups should live: what the leader of the control group proposes by itself.

use std::collections::BTreeSet;
use std::time::Duration;

use engine::Fault;
use engine::command::{Command, Proposal};
use engine::control::{Health, Node, NodeState, plan, read};
use model::{NodeId, Timestamp};
use tokio::time::{Instant, sleep_until};

use super::reports::{Reports, Survey};
use super::request::Led;
use crate::raft::{Core, Pending};

/// How often the plan is made again.
const PLAN_EVERY: Duration = Duration::from_millis(200);

/// What one leadership knows and proposes of the places of groups.
pub(super) struct Planning {
    reports: Reports,
    /// A node that is silent for so long is replaced.
    replace_after: Duration,
    next: Instant,
    /// What was proposed and is not applied yet.
    proposed: Option<Pending>,
}

impl Planning {
    pub(super) fn new(replace_after: Duration) -> Self {
        Planning {
            reports: Reports::new(),
            replace_after,
            next: Instant::now(),
            proposed: None,
        }
    }

    /// A node tells what it leads.
    pub(super) fn hear(&mut self, node: NodeId, led: Vec<Led>) {
        self.reports.hear(node, led);
    }

    /// What was heard from the nodes of the cluster.
    pub(super) fn survey(&self, core: &Core) -> Result<Survey, Fault> {
        let nodes = read::nodes(core.view())?.into_iter();
        let nodes = nodes.filter(|node| node.state != NodeState::Removed);
        Ok(self.reports.survey(nodes.map(|node| node.id)))
    }

    /// The nodes that were silent for too long. One that drains is to be: its operator has stopped
    /// it, and will start it again.
    fn lost(&self, core: &Core) -> Result<BTreeSet<NodeId>, Fault> {
        let is_lost = |node: &Node| {
            node.state != NodeState::Draining && self.reports.silence(node.id) >= self.replace_after
        };
        let nodes = read::nodes(core.view())?.into_iter();
        Ok(nodes.filter(is_lost).map(|node| node.id).collect())
    }

    /// Waits until it is time for another plan.
    pub(super) async fn due(&mut self) {
        if let Some(proposed) = &mut self.proposed {
            // One that was not applied is made again from what is then.
            let _ = proposed.await;
            self.proposed = None;
        }
        sleep_until(self.next).await;
    }

    /// Proposes the next step, if there is one.
    pub(super) async fn plan(&mut self, core: &Core, at: Timestamp) -> Result<(), Fault> {
        self.next = Instant::now() + PLAN_EVERY;
        let health = Health {
            lost: self.lost(core)?,
            voters: self.reports.voters(),
        };
        let commands: Vec<_> = plan(core.view(), &health)?
            .into_iter()
            .map(Command::Control)
            .collect();
        if !commands.is_empty() {
            self.proposed = Some(core.propose(None, Proposal { at, commands }).await);
        }
        Ok(())
    }
}

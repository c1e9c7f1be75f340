//! Where groups should live: what the leader of the control group proposes by itself.

use std::collections::BTreeSet;
use std::time::Duration;

use engine::Fault;
use engine::command::{Command, Proposal};
use engine::control::{self, Health, Node, NodeState, RaiseFormat, plan, read};
use model::{FormatLevel, NodeId, Timestamp};
use tokio::time::{Instant, sleep_until};

use super::formats::Formats;
use super::reports::{Reports, Survey};
use super::request::Led;
use crate::raft::{Core, Pending};

/// How often the plan is made again.
const PLAN_EVERY: Duration = Duration::from_millis(200);

/// What one leadership knows and proposes of the places of groups.
pub(super) struct Planning {
    reports: Reports,
    formats: Formats,
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
            formats: Formats::default(),
            replace_after,
            next: Instant::now(),
            proposed: None,
        }
    }

    /// A node tells which format level it knows, and what it leads.
    pub(super) fn hear(&mut self, node: NodeId, knows: FormatLevel, led: Vec<Led>) {
        self.formats.hear(node, knows);
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
        let mut commands = plan(core.view(), &health)?;
        commands.extend(self.raise(core)?.map(control::Command::RaiseFormat));
        let commands: Vec<_> = commands.into_iter().map(Command::Control).collect();
        if !commands.is_empty() {
            self.proposed = Some(core.propose(None, Proposal { at, commands }).await);
        }
        Ok(())
    }

    /// The rise of the format level, if it is time.
    fn raise(&self, core: &Core) -> Result<Option<RaiseFormat>, Fault> {
        let present = read::format_level(core.view())?;
        let nodes = read::nodes(core.view())?.into_iter();
        let members = nodes.filter(|node| node.state != NodeState::Removed);
        let next = self.formats.next(present, members.map(|node| node.id));
        // This node has told itself as well; but what it does not know it must not propose.
        let next = next.filter(|next| *next <= FormatLevel::KNOWN);
        Ok(next.map(|to| RaiseFormat { to }))
    }
}

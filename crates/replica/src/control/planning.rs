//! Where groups should live: what the leader of the control group proposes by itself.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use engine::Fault;
use engine::command::{Command, Proposal};
use engine::control::{Health, plan};
use model::{GroupId, NodeId, Term, Timestamp};
use tokio::time::{Instant, sleep_until};

use super::request::Led;
use crate::raft::{Core, Pending};

/// How often the plan is made again.
const PLAN_EVERY: Duration = Duration::from_millis(200);

/// What one leadership knows and proposes of the places of groups.
pub(super) struct Planning {
    /// Who votes in each group, and the term of the leader that said so.
    voters: BTreeMap<GroupId, (Term, BTreeSet<NodeId>)>,
    next: Instant,
    /// What was proposed and is not applied yet.
    proposed: Option<Pending>,
}

impl Planning {
    pub(super) fn new() -> Self {
        Planning {
            voters: BTreeMap::new(),
            next: Instant::now(),
            proposed: None,
        }
    }

    /// A node tells what it leads.
    pub(super) fn hear(&mut self, led: Vec<Led>) {
        for Led {
            group,
            term,
            voters,
        } in led
        {
            let known = self.voters.entry(group).or_default();
            if term >= known.0 {
                *known = (term, voters);
            }
        }
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
        let voters = self.voters.iter();
        let health = Health {
            // A node is replaced when its operator says so.
            lost: BTreeSet::new(),
            voters: voters
                .map(|(group, (_, voters))| (*group, voters.clone()))
                .collect(),
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

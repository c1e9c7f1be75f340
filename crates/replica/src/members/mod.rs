//! Who belongs to which group: what the catalogue wants becomes so, one step at a time.
//!
//! Level-triggered: the log of the control group says where replicas are wanted, and each group's
//! leader compares that with its members, again and again. Nothing is remembered but how long a
//! leadership has stood in the wrong place, so a new leader goes on where the last one stopped.
//!
//! - [`wanted`]: what the catalogue wants, as this node knows it.
//! - [`founding`]: groups that do not exist yet.
//! - [`step`]: the next change of a group's members.
//! - [`leading`]: which of its voters should lead a group.
//! - [`hand_over`]: all leaderships leave this node.

mod founding;
mod hand_over;
mod leading;
mod step;
mod wanted;

pub(crate) use hand_over::hand_over;

use std::collections::BTreeMap;
use std::time::Duration;

use engine::control::{Command, Founded, Placement};
use futures::future::join_all;
use model::{GroupId, NodeId};
use tokio::time::{Instant, timeout};
use tracing::{info, warn};

use crate::control::ControlClient;
use crate::groups::Groups;
use crate::peer::Peers;
use crate::raft::{Core, Stopped};
use crate::shard::Shards;
use crate::stopping::Stopping;

use founding::Founding;
use step::Step;
use wanted::Wanted;

/// How often what is wanted is compared with what is.
const ROUND_EVERY: Duration = Duration::from_millis(250);

/// How long one step may take. A group whose majority is away takes none.
const STEP_MAX: Duration = Duration::from_secs(5);

/// How long a voter must have been the better leader before it gets the leadership: a region that
/// is back must stay.
const LEADS_AFTER: Duration = Duration::from_secs(5);

/// How long a hand-over may take before it counts as failed.
const HAND_OVER_MAX: Duration = Duration::from_secs(2);

/// The entries that a learner may lack when it becomes a voter.
const CAUGHT_UP_LAG_MAX: u64 = 256;

/// The task's state.
struct Keeper {
    groups: Groups,
    control: ControlClient,
    peers: Peers,
    shards: Shards,
    wanted: Wanted,
    founding: Founding,
    /// For groups that another node should lead: which, and since when.
    better: BTreeMap<GroupId, (NodeId, Instant)>,
}

/// Keeps the members of the groups as they are wanted, until the node shuts down.
///
/// # Errors
/// [`Stopped`] when the catalogue can't be read, or a replica can't run.
pub(crate) async fn keep(
    groups: Groups,
    control: ControlClient,
    peers: Peers,
    shards: Shards,
    mut stopping: Stopping,
) -> Result<(), Stopped> {
    let keeper = Keeper {
        groups,
        control,
        peers,
        shards,
        wanted: Wanted::default(),
        founding: Founding::default(),
        better: BTreeMap::new(),
    };
    tokio::select! {
        () = stopping.begun() => Ok(()),
        stopped = keeper.work() => stopped,
    }
}

impl Keeper {
    async fn work(mut self) -> Result<(), Stopped> {
        let control = self.control.core().clone();
        let mut applied = control.applied();
        let mut read = None;
        let mut is_current = false;
        loop {
            let at = *applied.borrow_and_update();
            if read != Some(at) {
                let wanted = Wanted::read(control.view());
                self.wanted = wanted.map_err(|fault| control.stopped(fault))?;
                self.wanted.teach(&self.peers);
                self.shards.place(self.wanted.shards());
                read = Some(at);
            }
            // What this node knew when it stopped may name groups that others have founded since.
            is_current = is_current || control.read().await.is_ok();
            if is_current {
                self.founding.work(&self.wanted, &self.groups).await?;
            }
            self.change_members().await;
            self.move_one_leadership().await?;
            // Where the catalogue does not change, members and leaders do.
            let _ = timeout(ROUND_EVERY, applied.changed()).await;
        }
    }

    /// One step for each group that this node leads.
    async fn change_members(&self) {
        let led = self.led();
        let steps = led.iter().map(|(core, placement)| async {
            if timeout(STEP_MAX, self.change(core, placement))
                .await
                .is_err()
            {
                warn!(group = %core.group(), "a change of members takes too long");
            }
        });
        join_all(steps).await;
    }

    async fn change(&self, core: &Core, placement: &Placement) {
        let group = core.group();
        if !placement.founded && core.applied().borrow().is_some() {
            // Whether it was not done or only not heard of, the next round says it again.
            let _ = self
                .control
                .propose(Command::Founded(Founded { group }))
                .await;
        }
        let caught_up = |node| core.lag(node).is_some_and(|lag| lag <= CAUGHT_UP_LAG_MAX);
        let Some(step) = step::next(placement, &core.members(), core.node(), caught_up) else {
            return;
        };
        info!(%group, ?step, "members change");
        let changed = match step {
            Step::AddLearner(node) => core.add_learner(node).await,
            Step::ChangeVoters(voters) => core.change_voters(voters).await,
            Step::RemoveLearner(node) => core.remove_learner(node).await,
        };
        if let Err(error) = changed {
            warn!(%group, %error, "members did not change");
        }
    }

    /// At most one in a round: while a leadership moves, its group takes no writes.
    async fn move_one_leadership(&mut self) -> Result<(), Stopped> {
        let mut due = None;
        let mut better = BTreeMap::new();
        for (core, placement) in self.led() {
            let Some(heir) = leading::heir(&self.wanted, placement, &core, false) else {
                continue;
            };
            let group = core.group();
            let known = self
                .better
                .get(&group)
                .filter(|(node, _)| *node == heir.node);
            let since = known.map_or_else(Instant::now, |(_, since)| *since);
            better.insert(group, (heir.node, since));
            if heir.urgent || since.elapsed() >= LEADS_AFTER {
                due = due.or(Some((core, heir.node)));
            }
        }
        self.better = better;
        if let Some((core, heir)) = due {
            self.better.remove(&core.group());
            let led = core.transfer_to(heir, HAND_OVER_MAX).await?;
            info!(group = %core.group(), %heir, led, "leadership handed over");
        }
        Ok(())
    }

    /// The groups that this node leads, and where they are wanted.
    fn led(&self) -> Vec<(Core, &Placement)> {
        let cores = self.groups.all();
        let led = cores
            .values()
            .filter(|core| core.leader() == Some(core.node()));
        led.filter_map(|core| Some((core.clone(), self.wanted.placement(core.group())?)))
            .collect()
    }
}

//! Who belongs to which group: what the catalogue wants becomes so, one step at a time.
//!
//! Level-triggered: the log of the control group says where replicas are wanted, and each group's
//! leader compares that with its members, again and again. Nothing is remembered but how long a
//! leadership has stood in the wrong place, so a new leader goes on where the last one stopped.
//!
//! - [`wanted`]: what the catalogue wants, as this node knows it.
//! - [`founding`]: groups that do not exist yet.
//! - [`step`]: the next change of a group's members.
//! - [`leaders`]: leaderships go where they should be; [`leading`]: where that is.
//! - [`low_lease`]: a catalogue lease that runs low.
//! - [`stall`]: a disk that takes nothing any more.
//! - [`hand_over`]: all leaderships leave this node.

mod founding;
mod hand_over;
mod leaders;
mod leading;
mod low_lease;
mod stall;
mod step;
mod wanted;

pub(crate) use hand_over::hand_over;

use std::time::Duration;

use engine::control::{Command, Founded, Placement};
use futures::future::join_all;
use tokio::time::timeout;
use tracing::{info, warn};

use crate::catalogue::CatalogueLease;
use crate::control::ControlClient;
use crate::groups::Groups;
use crate::peer::Peers;
use crate::raft::{Core, Stopped};
use crate::shard::Shards;
use crate::stopping::Stopping;

use founding::Founding;
use leaders::Leaders;
use step::Step;
use wanted::Wanted;

/// How often what is wanted is compared with what is.
const ROUND_EVERY: Duration = Duration::from_millis(250);

/// How long one step may take. A group whose majority is away takes none.
const STEP_MAX: Duration = Duration::from_secs(5);

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
    lease: CatalogueLease,
    mut stopping: Stopping,
) -> Result<(), Stopped> {
    let leaders = Leaders::new(groups.clone(), control.clone(), lease);
    let keeper = Keeper {
        groups,
        control,
        peers,
        shards,
        wanted: Wanted::default(),
        founding: Founding::default(),
    };
    tokio::select! {
        () = stopping.begun() => Ok(()),
        stopped = keeper.work() => stopped,
        stopped = leaders.work() => stopped,
    }
}

impl Keeper {
    async fn work(mut self) -> Result<(), Stopped> {
        let control = self.control.core().clone();
        let mut applied = control.applied();
        let mut is_current = false;
        loop {
            applied.borrow_and_update();
            if self.wanted.refresh(&control)? {
                self.wanted.teach(&self.peers);
                self.shards.place(self.wanted.shards());
            }
            // What this node knew when it stopped may name groups that others have founded since.
            is_current = is_current || control.read().await.is_ok();
            if is_current {
                self.founding.work(&self.wanted, &self.groups).await?;
            }
            self.change_members().await;
            // Where the catalogue does not change, members and leaders do.
            if let Ok(Err(_)) = timeout(ROUND_EVERY, applied.changed()).await {
                return Err(control.until_stopped().await);
            }
        }
    }

    /// One step for each group that this node leads.
    async fn change_members(&self) {
        let led = self.wanted.led(&self.groups);
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
}

//! This node's copy of the catalogue: it follows the control group, tells the shards' leaders here
//! what changes mean for them, and knows whether the copy may be relied on.
//!
//! A shard's new leader compares its rows with the catalogue before it serves ([`missing`]), so a
//! change is in its log whichever of the two came first.
//!
//! - `follow`: what changes mean, handed to the leaders here.
//! - `lease`: whether the copy may be relied on.
//! - `keep`: the lease renewed.
//! - `missing`: what a shard lacks.

mod follow;
mod keep;
mod lease;
mod missing;

use crate::control::ControlClient;
use crate::groups::Groups;
use crate::raft::{Core, Stopped};
use crate::shard::Shards;
use crate::stopping::Stopping;

pub(crate) use lease::{CatalogueLease, LeaseKeeper, lease};
pub(crate) use missing::missing;

use follow::Follower;
use keep::keep;

/// Follows the catalogue and keeps its lease until the node shuts down.
pub(crate) async fn catalogue(
    core: Core,
    control: ControlClient,
    groups: Groups,
    shards: Shards,
    keeper: LeaseKeeper,
    lease: CatalogueLease,
    stopping: Stopping,
) -> Result<(), Stopped> {
    let (follower, complete) = Follower::new(&core, shards);
    let following = follower.work(stopping.clone());
    let keeping = keep(control, groups, keeper, lease, complete, stopping);
    tokio::try_join!(following, keeping).map(|_| ())
}

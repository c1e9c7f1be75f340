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
use crate::raft::Stopped;
use crate::session_numbers::SessionNumbers;
use crate::shard::Shards;
use crate::stopping::Stopping;

pub(crate) use lease::{CatalogueLease, LeaseKeeper, lease};
pub(crate) use missing::missing;

use follow::Follower;
use keep::Keeper;

/// What this node's copy of the catalogue works with.
pub(crate) struct Catalogue {
    pub(crate) control: ControlClient,
    pub(crate) groups: Groups,
    pub(crate) shards: Shards,
    pub(crate) keeper: LeaseKeeper,
    pub(crate) lease: CatalogueLease,
    /// The sessions of the node, which are numbered from its life's number on.
    pub(crate) sessions: SessionNumbers,
}

impl Catalogue {
    /// Follows the catalogue and keeps its lease until the node shuts down.
    pub(crate) async fn work(self, stopping: Stopping) -> Result<(), Stopped> {
        let (follower, complete) = Follower::new(self.control.core().clone(), self.shards);
        let following = follower.work(stopping.clone());
        let keeper = Keeper {
            control: self.control,
            groups: self.groups,
            keeper: self.keeper,
            lease: self.lease,
            complete,
            life: self.sessions.life(),
            sessions: self.sessions,
        };
        tokio::try_join!(following, keeper.work(stopping)).map(|_| ())
    }
}

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

use std::collections::BTreeMap;

use model::{Boot, NodeId};
use tokio::sync::watch;

use crate::clock::Clock;
use crate::control::ControlClient;
use crate::groups::Groups;
use crate::raft::{Core, Stopped};
use crate::session_numbers::SessionNumbers;
use crate::shard::Shards;
use crate::stopping::Stopping;

pub(crate) use lease::{CatalogueLease, LeaseKeeper, lease};
pub(crate) use missing::missing;

use follow::Follower;
use keep::Keeper;

/// What this node's copy of the catalogue works with.
pub(crate) struct Catalogue {
    pub(crate) core: Core,
    pub(crate) control: ControlClient,
    pub(crate) groups: Groups,
    pub(crate) shards: Shards,
    pub(crate) clock: Clock,
    pub(crate) keeper: LeaseKeeper,
    pub(crate) lease: CatalogueLease,
    /// The number of this life of the node: a later one has a greater number. The wall clock does
    /// for that; where it has gone back, the control group says so, and the life is numbered anew.
    pub(crate) life: Boot,
    /// The sessions of the node, which are numbered by its lives.
    pub(crate) sessions: SessionNumbers,
    pub(crate) lives: watch::Sender<Lives>,
}

/// The present life of each node, as the control group has committed it.
pub(crate) type Lives = BTreeMap<NodeId, Boot>;

impl Catalogue {
    /// Follows the catalogue and keeps its lease until the node shuts down.
    pub(crate) async fn work(self, stopping: Stopping) -> Result<(), Stopped> {
        let (follower, complete) = Follower::new(self.core, self.shards, self.lives);
        let following = follower.work(stopping.clone());
        let keeper = Keeper {
            control: self.control,
            groups: self.groups,
            clock: self.clock,
            keeper: self.keeper,
            lease: self.lease,
            complete,
            life: self.life,
            sessions: self.sessions,
        };
        tokio::try_join!(following, keeper.work(stopping)).map(|_| ())
    }
}

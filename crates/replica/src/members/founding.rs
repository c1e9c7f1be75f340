//! Groups that do not exist yet: their founders open and initialise them.
//!
//! Every founder initialises with the same voters, so that it does not matter how many of them do:
//! the entry is the same, and Raft elects one leader. Where the catalogue says that the group
//! exists, nobody initialises it again, whatever its disk holds.

use std::collections::BTreeMap;
use std::time::Duration;

use engine::control::Placement;
use model::GroupId;
use tokio::time::Instant;
use tracing::info;

use super::wanted::Wanted;
use crate::groups::Groups;
use crate::raft::Stopped;

/// How long the other founders leave it to the first of them. Two that begin at once may have to
/// elect twice.
const OTHERS_AFTER: Duration = Duration::from_secs(2);

/// Since when this node has seen that a group does not exist.
#[derive(Default)]
pub(super) struct Founding(BTreeMap<GroupId, Instant>);

impl Founding {
    /// Initialises what this node is a founder of, where it does not exist yet.
    ///
    /// # Errors
    /// [`Stopped`] when a replica can't run.
    pub(super) async fn work(&mut self, wanted: &Wanted, groups: &Groups) -> Result<(), Stopped> {
        let node = groups.node();
        let mut unfounded = BTreeMap::new();
        for placement in wanted.placements() {
            let group = placement.group;
            let is_founder = placement.founders.contains(&node);
            if placement.founded || !is_founder {
                continue;
            }
            let seen = self.0.get(&group).copied();
            let since = seen.unwrap_or_else(Instant::now);
            unfounded.insert(group, since);
            let is_first = placement.founders.first() == Some(&node);
            if is_first || since.elapsed() >= OTHERS_AFTER {
                found(placement, groups).await?;
            }
        }
        self.0 = unfounded;
        Ok(())
    }
}

async fn found(placement: &Placement, groups: &Groups) -> Result<(), Stopped> {
    let group = placement.group;
    let core = groups.open(group).await?;
    if core.exists().await? {
        return Ok(());
    }
    info!(%group, voters = ?placement.founders, "founding a group");
    match core.found(placement.founders.clone()).await {
        // Another founder was faster, between the two looks.
        Err(_) if core.exists().await? => Ok(()),
        founded => founded,
    }
}

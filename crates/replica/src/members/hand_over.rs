//! All leaderships leave this node, before it stops.

use std::time::Duration;

use tokio::time::{Instant, sleep};
use tracing::info;

use super::leaders::HAND_OVER_MAX;
use super::leading;
use super::wanted::Wanted;
use crate::groups::Groups;
use crate::raft::{Core, Stopped};

/// How long the next look waits where nobody could take over.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Hands over what this node leads, one group after another, until nothing is left that another
/// voter could take, or `patience` is over. Groups with no other voter stay. From then on the node
/// campaigns for none.
///
/// # Errors
/// [`Stopped`] when a replica can't run.
pub(crate) async fn hand_over(
    groups: &Groups,
    control: &Core,
    patience: Duration,
) -> Result<(), Stopped> {
    let deadline = Instant::now() + patience;
    let mut wanted = Wanted::default();
    groups.all().values().for_each(Core::campaign_no_more);
    loop {
        wanted.refresh(control)?;
        let cores = groups.all();
        let led = cores.values().filter(|core| is_shared(core));
        let led: Vec<&Core> = led.collect();
        if led.is_empty() || Instant::now() >= deadline {
            info!(left = led.len(), "leaderships handed over");
            return Ok(());
        }
        let mut moved = false;
        for core in led {
            let able = |node| core.is_at_tip(node);
            let placement = wanted.placement(core.group());
            let heir = placement.and_then(|it| leading::heir(&wanted, it, core, able, true));
            if let Some(heir) = heir {
                moved |= core.transfer_to(heir.node, HAND_OVER_MAX).await?;
            }
        }
        if !moved {
            sleep(LOOK_EVERY).await;
        }
    }
}

/// Whether this node leads the group, and others vote in it.
fn is_shared(core: &Core) -> bool {
    let voters: usize = core
        .members()
        .voters
        .iter()
        .map(|set| set.len())
        .max()
        .unwrap_or(0);
    core.leader() == Some(core.node()) && voters > 1
}

//! Leaderships go where they should be.

use std::collections::BTreeMap;
use std::time::Duration;

use engine::control;
use futures::future::try_join_all;
use model::{GroupId, NodeId};
use tokio::time::{Instant, sleep};
use tracing::{info, warn};

use super::ROUND_EVERY;
use super::leading::{self, Heir};
use super::low_lease::{self, Leases};
use super::stall::Stalls;
use super::wanted::Wanted;
use crate::catalogue::CatalogueLease;
use crate::control::ControlClient;
use crate::groups::Groups;
use crate::raft::{Core, Stopped};

/// How long a voter must have been the better leader before it gets the leadership: a region that
/// is back must stay.
const LEADS_AFTER: Duration = Duration::from_secs(5);

/// How long a hand-over may take before it counts as failed.
pub(super) const HAND_OVER_MAX: Duration = Duration::from_secs(2);

/// How long a node is passed over that was handed a leadership and did not take it.
const PASSED_OVER_FOR: Duration = Duration::from_secs(60);

/// Looks after the leaderships of one node.
pub(super) struct Leaders {
    groups: Groups,
    control: ControlClient,
    lease: CatalogueLease,
    wanted: Wanted,
    stalls: Stalls,
    /// For groups that another node should lead: which, and since when.
    better: BTreeMap<GroupId, (NodeId, Instant)>,
    /// Nodes that failed to take a leadership, and when.
    failed: BTreeMap<NodeId, Instant>,
}

impl Leaders {
    pub(super) fn new(groups: Groups, control: ControlClient, lease: CatalogueLease) -> Self {
        Leaders {
            groups,
            control,
            lease,
            wanted: Wanted::default(),
            stalls: Stalls::default(),
            better: BTreeMap::new(),
            failed: BTreeMap::new(),
        }
    }

    /// Works until it is dropped.
    ///
    /// # Errors
    /// [`Stopped`] when the catalogue can't be read, or a replica can't run.
    pub(super) async fn work(mut self) -> Result<(), Stopped> {
        loop {
            let control = self.control.core().clone();
            self.wanted.refresh(&control)?;
            self.failed.retain(|_, at| at.elapsed() < PASSED_OVER_FOR);
            let leases = low_lease::of_others(&self.lease, &self.control, &self.groups).await;
            let unsettled = control::read::last_change(control.view());
            let unsettled = unsettled.map_err(|fault| control.stopped(fault))?;
            let due = self.due(&leases, unsettled > self.lease.settled());
            let handed = due.iter().map(|(core, heir)| hand_over(core, *heir));
            for (heir, led) in try_join_all(handed).await? {
                if !led {
                    self.failed.insert(heir, Instant::now());
                }
            }
            sleep(ROUND_EVERY).await;
        }
    }

    /// The leaderships that are to be handed over now: all that are urgent, else at most one. While
    /// a leadership moves, its group takes no writes; and a new leader of the control group has to
    /// wait for nodes that are gone as if they had just been there, so that one does not move
    /// while a change is `unsettled`.
    fn due(&mut self, leases: &Option<Leases>, unsettled: bool) -> Vec<(Core, NodeId)> {
        let led = self.wanted.led(&self.groups);
        let stalled = self.stalls.see(led.iter().map(|(core, _)| core));
        // A leader without room refuses publishes that another one could take.
        let full = led.iter().any(|(core, _)| !core.has_room(core.node()));
        let (mut urgent, mut others) = (Vec::new(), Vec::new());
        let mut better = BTreeMap::new();
        for (core, placement) in led {
            // Whoever leads the control group needs no lease of another.
            let leases = leases.as_ref().filter(|_| core.group() != GroupId::Control);
            let able = |node| {
                core.is_at_tip(node)
                    && core.has_room(node)
                    && !self.failed.contains_key(&node)
                    && leases.is_none_or(|leases| leases.is_better_off(node))
            };
            let leaves = stalled || full || leases.is_some();
            let heir = leading::heir(&self.wanted, placement, &core, able, leaves);
            let Some(Heir { node, urgent: now }) = heir else {
                continue;
            };
            if core.group() == GroupId::Control && unsettled && !now {
                continue;
            }
            let known = self
                .better
                .get(&core.group())
                .filter(|(heir, _)| *heir == node);
            let since = known.map_or_else(Instant::now, |(_, since)| *since);
            better.insert(core.group(), (node, since));
            match now {
                true => urgent.push((core, node)),
                false if since.elapsed() >= LEADS_AFTER => others.push((core, node)),
                false => {}
            }
        }
        self.better = better;
        if stalled {
            warn!("the disk takes nothing any more: leaderships leave this node");
        }
        match urgent.is_empty() {
            true => others.into_iter().take(1).collect(),
            false => urgent,
        }
    }
}

/// Hands one leadership over, and answers whether the other node leads.
async fn hand_over(core: &Core, heir: NodeId) -> Result<(NodeId, bool), Stopped> {
    let led = core.transfer_to(heir, HAND_OVER_MAX).await?;
    info!(group = %core.group(), %heir, led, "leadership handed over");
    Ok((heir, led))
}

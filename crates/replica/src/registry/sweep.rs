//! Pins of which their shards have nothing go: the leader of each registry group asks after old
//! ones, a few at a time.

use std::collections::BTreeMap;
use std::time::Duration;

use engine::dispatch::TransferMessage;
use engine::registry::PinSweep;
use model::GroupId;
use tokio::time::sleep;

use crate::clock::Clock;
use crate::groups::Groups;
use crate::raft::{Core, Stopped};
use crate::shard::Shards;
use crate::stopping::Stopping;

/// Between two looks at the pins of a group. What is looked for does no harm while it stays, and a
/// shard looks each pin up.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Sweeps the groups that this node leads, until the node stops.
pub(crate) async fn sweep(
    groups: Groups,
    shards: Shards,
    clock: Clock,
    mut stopping: Stopping,
) -> Result<(), Stopped> {
    let swept = async {
        let mut sweeps = BTreeMap::new();
        loop {
            sleep(LOOK_EVERY).await;
            look_at_all(&groups, &shards, clock, &mut sweeps).await?;
        }
    };
    tokio::select! {
        () = stopping.begun() => Ok(()),
        stopped = swept => stopped,
    }
}

async fn look_at_all(
    groups: &Groups,
    shards: &Shards,
    clock: Clock,
    sweeps: &mut BTreeMap<GroupId, PinSweep>,
) -> Result<(), Stopped> {
    let cores = groups.all();
    let is_led = |group: &GroupId| {
        let leader = cores.get(group).and_then(Core::leader);
        matches!(group, GroupId::Registry(_)) && leader == Some(groups.node())
    };
    sweeps.retain(|group, _| is_led(group));
    for (group, core) in cores.iter().filter(|(group, _)| is_led(group)) {
        let sweep = sweeps.entry(*group).or_default();
        let found = sweep.look(core.view(), clock.monotonic());
        for (shard, pins) in found.map_err(|fault| core.stopped(fault))? {
            // A shard without a leader hears of them in the next round.
            if let Some(shard) = shards.client(shard) {
                let message = TransferMessage::OldPins { pins };
                shard.tell(message, LOOK_EVERY).await;
            }
        }
    }
    Ok(())
}

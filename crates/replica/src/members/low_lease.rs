//! A leader of shards whose catalogue lease runs low: without one it may serve nothing, and another
//! voter may have more.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use futures::future::join_all;
use model::NodeId;
use tokio::time::{Instant, timeout_at};

use crate::catalogue::CatalogueLease;
use crate::control::ControlClient;
use crate::groups::Groups;

/// A lease with less left runs low: several renewals have failed by then, and there is still time
/// to hand leaderships over.
const LOW: Duration = Duration::from_secs(6);

/// How long other nodes have to say how much they have.
const ANSWER_MAX: Duration = Duration::from_millis(500);

/// What is left of the leases of other nodes, asked since this node's own runs low.
#[derive(Debug, Default)]
pub(super) struct Leases(BTreeMap<NodeId, Duration>);

impl Leases {
    /// Whether the lease of a node does not run low.
    pub(super) fn is_better_off(&self, node: NodeId) -> bool {
        self.0.get(&node).is_some_and(|left| *left >= LOW)
    }
}

/// The leases of those who vote in groups that this node leads; `None` while its own does not run
/// low.
pub(super) async fn of_others(
    own: &CatalogueLease,
    control: &ControlClient,
    groups: &Groups,
) -> Option<Leases> {
    if own.left() >= LOW {
        return None;
    }
    let voters = groups.led().into_iter().flat_map(|led| led.voters);
    let others: BTreeSet<NodeId> = voters.filter(|node| *node != groups.node()).collect();
    let until = Instant::now() + ANSWER_MAX;
    let asked = others.into_iter().map(|node| async move {
        let left = timeout_at(until, control.lease_left_at(node, until)).await;
        left.ok().flatten().map(|left| (node, left))
    });
    Some(Leases(
        join_all(asked).await.into_iter().flatten().collect(),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_node_that_says_so_is_better_off() {
        let left = [
            (NodeId(1), LOW),
            (NodeId(2), LOW - Duration::from_millis(1)),
        ];
        let leases = Leases(BTreeMap::from(left));
        let better = [1, 2, 3].map(|node| leases.is_better_off(NodeId(node)));
        assert_eq!(better, [true, false, false]);
    }
}

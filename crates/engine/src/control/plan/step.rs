//! One step from the voters of a group to those that it should have.

use std::collections::BTreeSet;

use model::NodeId;

use super::sites::Sites;

/// With fewer voters one can't be exchanged: its leaving would take away half of them or all.
const EXCHANGE_VOTERS_MIN: usize = 3;

/// The voters after one step from `present` to `target`: one more, one less, or one exchanged; or
/// `present` itself, when no step is safe. A step is safe when a majority is well before it and
/// after it.
pub(super) fn towards(
    sites: &Sites,
    present: &BTreeSet<NodeId>,
    target: &BTreeSet<NodeId>,
) -> BTreeSet<NodeId> {
    let is_safe = |voters: &BTreeSet<NodeId>| has_majority(sites, voters);
    if !is_safe(present) {
        return present.clone();
    }
    let mut steps = Vec::new();
    let coming = target.difference(present).next().copied();
    let enough = present.len() >= target.len().max(EXCHANGE_VOTERS_MIN);
    for leaving in leaving(sites, present, target) {
        match coming {
            Some(coming) if enough => steps.push(changed(present, Some(coming), Some(leaving))),
            Some(_) => {}
            None => steps.push(changed(present, None, Some(leaving))),
        }
    }
    if coming.is_some() && !enough {
        steps.push(changed(present, coming, None));
    }
    let safe = steps.into_iter().find(is_safe);
    safe.unwrap_or_else(|| present.clone())
}

/// Who should leave: those who can't vote any more before those who can.
fn leaving(sites: &Sites, present: &BTreeSet<NodeId>, target: &BTreeSet<NodeId>) -> Vec<NodeId> {
    let mut leaving: Vec<_> = present.difference(target).copied().collect();
    leaving.sort_by_key(|node| (sites.is_well(*node), sites.may_stay(*node), *node));
    leaving
}

fn changed(
    present: &BTreeSet<NodeId>,
    coming: Option<NodeId>,
    leaving: Option<NodeId>,
) -> BTreeSet<NodeId> {
    let mut changed = present.clone();
    changed.extend(coming);
    if let Some(leaving) = leaving {
        changed.remove(&leaving);
    }
    changed
}

fn has_majority(sites: &Sites, voters: &BTreeSet<NodeId>) -> bool {
    let well = voters.iter().filter(|node| sites.is_well(**node)).count();
    well * 2 > voters.len()
}

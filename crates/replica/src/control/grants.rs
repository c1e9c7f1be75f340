//! Which nodes may take their copy of the catalogue for the present one, as the control group's
//! leader knows it: the **catalogue leases**.
//!
//! A change is answered when every node that may have a lease has applied it and its shards'
//! leaders have logged it; a node that is gone holds changes up until its lease has run out, and
//! never again. No lease is granted to a node that lacks something that was answered.

use std::collections::BTreeMap;
use std::time::Duration;

use model::{NodeId, Timestamp};

use super::request::Renewal;

/// How long a lease lasts, counted by its node from the moment it asked.
pub(super) const CATALOGUE_LEASE: Duration = Duration::from_secs(10);

/// What this leader adds before it takes a lease for run out: two clocks that run 1 % apart, which
/// no healthy machine reaches, stay within it.
const CLOCK_DRIFT_MAX: Duration = Duration::from_millis(100);

/// A node that keeps a change waiting for longer is not granted another lease until it has caught
/// up. So a node that lives but does not get on holds changes up for one lease at most.
const CHANGE_HELD_UP_MAX: Duration = Duration::from_secs(1);

/// One leadership's knowledge of all leases. Time is the leader's monotonic clock.
#[derive(Debug)]
pub(super) struct Grants {
    nodes: BTreeMap<NodeId, Holder>,
    /// Entries whose callers wait, and since when.
    waiting: BTreeMap<u64, Timestamp>,
    /// The highest entry that was answered, by this leader or an earlier one.
    answered: u64,
}

/// A node that has a lease, had one, or may have one.
#[derive(Debug)]
struct Holder {
    /// Which life of the node it is: `None` where an earlier leader may have granted a lease.
    boot: Option<u64>,
    /// Up to which entry the node has applied the catalogue, and its shards' leaders logged it.
    complete: u64,
    /// When the lease has run out for certain.
    until: Timestamp,
}

impl Grants {
    /// What a new leader has to presume: any of `nodes` may hold a lease of an earlier leader,
    /// and everything up to `first`, the leadership's first entry, may have been answered.
    pub(super) fn presume(
        nodes: impl IntoIterator<Item = NodeId>,
        first: u64,
        now: Timestamp,
    ) -> Self {
        let until = now.plus(CATALOGUE_LEASE + CLOCK_DRIFT_MAX);
        let holder = |node| {
            let (boot, complete) = (None, 0);
            let holder = Holder {
                boot,
                complete,
                until,
            };
            (node, holder)
        };
        Grants {
            nodes: nodes.into_iter().map(holder).collect(),
            waiting: BTreeMap::from([(first, now)]),
            answered: first,
        }
    }

    /// A change was applied here: it waits until every holder is complete up to `index`.
    pub(super) fn wait_for(&mut self, index: u64, now: Timestamp) {
        self.waiting.entry(index).or_insert(now);
    }

    /// Takes note of how far a node has come, and says whether it is granted its lease.
    pub(super) fn renew(&mut self, renewal: &Renewal, now: Timestamp) -> bool {
        let Renewal {
            node,
            boot,
            complete,
            ..
        } = *renewal;
        let holder = self.nodes.entry(node).or_insert(Holder {
            boot: None,
            complete: 0,
            until: now,
        });
        if holder.boot != Some(boot) {
            // An earlier life of the node can't use its lease any more.
            *holder = Holder {
                boot: Some(boot),
                complete: 0,
                until: now,
            };
        }
        holder.complete = holder.complete.max(complete);
        let held_up = |(index, since): (&u64, &Timestamp)| {
            *index > complete && now.since(*since) > CHANGE_HELD_UP_MAX
        };
        let granted = complete >= self.answered && !self.waiting.iter().any(held_up);
        if granted {
            holder.until = now.plus(CATALOGUE_LEASE + CLOCK_DRIFT_MAX);
        }
        granted
    }

    /// A node has given up the lease of this life.
    pub(super) fn release(&mut self, node: NodeId, boot: u64, now: Timestamp) {
        match self.nodes.get_mut(&node) {
            // An earlier leader may have granted it: no later life of the node has asked yet.
            Some(holder) if holder.boot.is_none_or(|of| of == boot) => holder.until = now,
            _ => {}
        }
    }

    /// Up to which entry everyone who may have a lease is complete.
    pub(super) fn complete(&self, now: Timestamp) -> u64 {
        let holders = self.nodes.values().filter(|holder| holder.until > now);
        holders
            .map(|holder| holder.complete)
            .min()
            .unwrap_or(u64::MAX)
    }

    /// Takes the changes that can be answered now out of those that wait.
    pub(super) fn settle(&mut self, now: Timestamp) -> u64 {
        let complete = self.complete(now);
        let answered = self.waiting.range(..=complete).next_back();
        if let Some((&index, _)) = answered {
            self.answered = self.answered.max(index);
        }
        self.waiting.retain(|index, _| *index > complete);
        complete
    }

    /// The first entry that is not known to everyone who may have a lease.
    pub(super) fn unanswered(&self) -> Option<u64> {
        self.waiting.keys().next().copied()
    }

    /// When the next lease of a node that holds a change up runs out.
    pub(super) fn next_end(&self, now: Timestamp) -> Option<Timestamp> {
        let last = *self.waiting.keys().next_back()?;
        let holding_up = |holder: &&Holder| holder.until > now && holder.complete < last;
        let holders = self.nodes.values().filter(holding_up);
        holders.map(|holder| holder.until).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: NodeId = NodeId(1);
    const B: NodeId = NodeId(2);
    const START: Timestamp = Timestamp(0);

    fn after(seconds: u64) -> Timestamp {
        START.plus(Duration::from_secs(seconds))
    }

    fn renewal(node: NodeId, complete: u64) -> Renewal {
        let (boot, led) = (1, Vec::new());
        Renewal {
            node,
            boot,
            complete,
            led,
        }
    }

    /// Two nodes with leases, complete up to entry 5.
    fn two_nodes() -> Grants {
        let mut grants = Grants::presume([A, B], 5, START);
        assert!(grants.renew(&renewal(A, 5), START));
        assert!(grants.renew(&renewal(B, 5), START));
        grants
    }

    #[test]
    fn a_change_waits_for_every_holder() {
        let mut grants = two_nodes();
        grants.wait_for(6, START);
        grants.renew(&renewal(A, 6), START);
        assert_eq!(grants.settle(START), 5);
        grants.renew(&renewal(B, 6), START);
        assert_eq!(grants.settle(START), 6);
    }

    #[test]
    fn a_node_that_is_gone_holds_changes_up_for_one_lease() {
        let mut grants = two_nodes();
        grants.wait_for(6, START);
        for second in 0..10 {
            grants.renew(&renewal(A, 6), after(second));
        }
        assert_eq!(grants.settle(after(9)), 5);
        let end = grants.next_end(after(9)).expect("B holds the change up");
        assert!(end > after(10), "a lease is over late rather than early");
        assert_eq!(grants.settle(end), 6);
        grants.wait_for(7, end);
        grants.renew(&renewal(A, 7), end);
        assert_eq!(grants.settle(end), 7, "B holds nothing up any more");
    }

    #[test]
    fn a_node_behind_an_answer_gets_no_lease() {
        let mut grants = two_nodes();
        grants.wait_for(6, START);
        grants.renew(&renewal(A, 6), after(20));
        assert_eq!(grants.settle(after(20)), 6);
        assert!(!grants.renew(&renewal(B, 5), after(20)));
        assert!(grants.renew(&renewal(B, 6), after(20)));
    }

    #[test]
    fn a_node_that_does_not_get_on_loses_its_lease() {
        let mut grants = two_nodes();
        grants.wait_for(6, after(1));
        assert!(grants.renew(&renewal(B, 5), after(2)));
        assert!(!grants.renew(&renewal(B, 5), after(3)));
        assert!(grants.renew(&renewal(B, 6), after(4)));
    }

    #[test]
    fn a_new_leader_presumes_leases_of_the_one_before() {
        let mut grants = Grants::presume([A, B], 5, START);
        grants.renew(&renewal(A, 9), START);
        assert_eq!(grants.complete(START), 0, "nothing is known of B");
        assert_eq!(grants.complete(after(11)), u64::MAX);
    }

    #[test]
    fn a_lease_that_is_given_up_holds_nothing_up() {
        let mut grants = two_nodes();
        grants.wait_for(6, START);
        grants.renew(&renewal(A, 6), START);
        grants.release(B, 2, START);
        assert_eq!(grants.settle(START), 5, "that is another life of the node");
        grants.release(B, 1, START);
        assert_eq!(grants.settle(START), 6);
    }

    #[test]
    fn a_lease_ends_with_its_process() {
        let mut grants = two_nodes();
        grants.wait_for(6, START);
        grants.renew(&renewal(A, 6), START);
        let restarted = Renewal {
            boot: 2,
            ..renewal(B, 3)
        };
        assert!(!grants.renew(&restarted, START));
        assert_eq!(grants.settle(START), 6);
    }
}

//! Whether this node can serve: what a load balancer asks, and an operator.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use engine::Fault;
use engine::control::{self, NodeState, Placement, plan, read};
use model::{GroupId, NodeId};
use store::{DiskLevel, Store};
use tokio::time::Instant;

use crate::catalogue::CatalogueLease;
use crate::groups::Groups;
use crate::raft::Core;

/// A group of which no leader is known for so long can't be used through this node. Before, its calls
/// wait here as well as anywhere: a leadership passes on, or an election is under way, and a load
/// balancer would find all nodes unready at once.
const LEADERLESS_MAX: Duration = Duration::from_millis(1_500);

/// Looks at a node. Clones look at the same.
#[derive(Clone)]
pub struct Health {
    groups: Groups,
    control: Core,
    lease: CatalogueLease,
    store: Store,
    draining: Arc<AtomicBool>,
    /// When a leader of each group was last known, by the looks so far.
    led: Arc<Mutex<BTreeMap<GroupId, Instant>>>,
}

/// One thing that was looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    /// Its name, as it stands in `/readyz/NAME`.
    pub name: &'static str,
    /// What is wrong with it; `None` where all is well.
    pub ailment: Option<String>,
}

impl Health {
    pub(crate) fn new(
        groups: &Groups,
        control: &Core,
        lease: &CatalogueLease,
        store: &Store,
    ) -> Self {
        Health {
            groups: groups.clone(),
            control: control.clone(),
            lease: lease.clone(),
            store: store.clone(),
            draining: Arc::default(),
            led: Arc::default(),
        }
    }

    /// Everything that must be well for the node to take calls.
    #[must_use]
    pub fn ready(&self) -> Vec<Check> {
        vec![
            check("drain", self.drain()),
            check("catalogue", self.catalogue()),
            check("groups", self.groups()),
            check("disk", self.disk()),
        ]
    }

    /// Whether the groups that this node leads stand where they are wanted. A node whose groups
    /// are still on their way takes calls nevertheless.
    #[must_use]
    pub fn placement(&self) -> Check {
        check("placement", self.placed())
    }

    /// The node is about to stop: from now on it is not ready.
    pub fn begin_drain(&self) {
        self.draining.store(true, Ordering::Relaxed);
    }

    fn drain(&self) -> Option<String> {
        if self.draining.load(Ordering::Relaxed) {
            return Some("the node is about to stop".to_owned());
        }
        let node = match read::node(self.control.view(), self.groups.node()) {
            Ok(node) => node?,
            Err(fault) => return Some(unreadable(&fault)),
        };
        match node.state {
            NodeState::Active => None,
            state => Some(format!(
                "the node is {state}; \"orderly nodes activate {}\" takes it back while it can",
                node.name
            )),
        }
    }

    fn catalogue(&self) -> Option<String> {
        let lasts = self.lease.lasts();
        (!lasts).then(|| "no catalogue lease: the control group can't be reached".to_owned())
    }

    fn groups(&self) -> Option<String> {
        let lacks = |placement: &Placement| match self.groups.get(placement.group) {
            None => true,
            Some(core) => self.is_leaderless(placement.group, core.leader()),
        };
        self.wrong(
            |placement| self.is_placed_here(placement) && lacks(placement),
            "no leader is known of",
        )
    }

    /// Whether no leader of the group is known, and none was for too long, or ever.
    fn is_leaderless(&self, group: GroupId, leader: Option<NodeId>) -> bool {
        // Every change of the map is whole.
        let mut led = self.led.lock().unwrap_or_else(PoisonError::into_inner);
        if leader.is_some() {
            led.insert(group, Instant::now());
        }
        led.get(&group)
            .is_none_or(|last| last.elapsed() >= LEADERLESS_MAX)
    }

    fn disk(&self) -> Option<String> {
        match self.store.disk_level() {
            DiskLevel::Normal => None,
            level => Some(format!("the disk is nearly full ({level:?}): make room")),
        }
    }

    fn placed(&self) -> Option<String> {
        match plan(self.control.view(), &control::Health::default()) {
            Ok(steps) if steps.is_empty() => {}
            Ok(_) => return Some("groups are still being placed".to_owned()),
            Err(fault) => return Some(unreadable(&fault)),
        }
        let misplaced = |placement: &Placement| {
            let core = self.groups.get(placement.group);
            core.is_some_and(|core| {
                core.leader() == Some(core.node()) && !core.is_decided(&placement.voters)
            })
        };
        self.wrong(misplaced, "the voters are on their way of")
    }

    fn is_placed_here(&self, placement: &Placement) -> bool {
        let node = self.groups.node();
        placement.voters.contains(&node) || placement.learners.contains(&node)
    }

    /// Names the groups of which something is wrong.
    fn wrong(&self, is_wrong: impl Fn(&Placement) -> bool, what: &str) -> Option<String> {
        let placements = match read::placements(self.control.view()) {
            Ok(placements) if placements.is_empty() => {
                return Some("the catalogue has not arrived yet".to_owned());
            }
            Ok(placements) => placements,
            Err(fault) => return Some(unreadable(&fault)),
        };
        let wrong = placements.iter().filter(|placement| is_wrong(placement));
        let groups: Vec<String> = wrong.map(|wrong| wrong.group.to_string()).collect();
        (!groups.is_empty()).then(|| format!("{what} {}", groups.join(", ")))
    }
}

fn check(name: &'static str, ailment: Option<String>) -> Check {
    Check { name, ailment }
}

fn unreadable(fault: &Fault) -> String {
    format!("the catalogue can't be read: {fault}")
}

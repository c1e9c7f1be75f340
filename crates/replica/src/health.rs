//! Whether this node can serve: what a load balancer asks, and an operator.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use engine::Fault;
use engine::control::{self, NodeState, Placement, plan, read};
use model::NodeId;
use store::{DiskLevel, Store};
use tokio::time::Instant;

use crate::catalogue::CatalogueLease;
use crate::groups::Groups;
use crate::raft::Core;

/// Looks at a node. Clones look at the same.
#[derive(Clone)]
pub struct Health {
    groups: Groups,
    control: Core,
    lease: CatalogueLease,
    store: Store,
    draining: Arc<AtomicBool>,
    /// How long an election takes, at most, unless all goes wrong.
    election_max: Duration,
    leaders: Arc<Mutex<Leaders>>,
}

/// Whether leaders are known of all groups with a replica here, as far as anybody has asked.
#[derive(Clone, Copy, Debug)]
enum Leaders {
    /// Not yet since the node has started.
    NotYet,
    Known,
    /// Some leader is not known since then.
    LackingSince(Instant),
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
        election_max: Duration,
    ) -> Self {
        Health {
            groups: groups.clone(),
            control: control.clone(),
            lease: lease.clone(),
            store: store.clone(),
            draining: Arc::default(),
            election_max,
            leaders: Arc::new(Mutex::new(Leaders::NotYet)),
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

    /// Whether all groups here have leaders, and those that this node leads stand where they are
    /// wanted. A node whose groups are still on their way takes calls nevertheless.
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

    /// Groups without a leader. Where one is being elected the node takes calls: they wait for it,
    /// and those of other groups need not. That is so if the node hears of leaders elsewhere, and
    /// not for longer than an election takes. A node that has just started knows too little.
    fn groups(&self) -> Option<String> {
        let lacking = self.leaderless();
        let mut leaders = self.leaders.lock().unwrap_or_else(PoisonError::into_inner);
        let since = match (*leaders, &lacking) {
            (_, None) => {
                *leaders = Leaders::Known;
                return None;
            }
            (Leaders::NotYet, _) => return lacking,
            (Leaders::Known, _) => Instant::now(),
            (Leaders::LackingSince(since), _) => since,
        };
        *leaders = Leaders::LackingSince(since);
        let is_electing = since.elapsed() < self.election_max && self.hears_of_others();
        lacking.filter(|_| !is_electing)
    }

    fn leaderless(&self) -> Option<String> {
        let lacks = |placement: &Placement| {
            let core = self.groups.get(placement.group);
            core.is_none_or(|core| core.leader().is_none())
        };
        self.wrong(
            |placement| self.is_placed_here(placement) && lacks(placement),
            "no leader is known of",
        )
    }

    /// Whether any group here is led by another node, as far as this one knows.
    fn hears_of_others(&self) -> bool {
        let node = self.groups.node();
        let cores = self.groups.all();
        let mut leaders = cores.values().filter_map(Core::leader);
        leaders.any(|leader| leader != node)
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
        if let Some(bereft) = self.leaderless().or_else(|| self.stranded()) {
            return Some(bereft);
        }
        let misplaced = |placement: &Placement| {
            let core = self.groups.get(placement.group);
            core.is_some_and(|core| {
                core.leader() == Some(core.node()) && !core.is_decided(&placement.voters)
            })
        };
        self.wrong(misplaced, "the voters are on their way of")
    }

    /// Groups whose majority was on nodes that were replaced: no plan brings them back.
    fn stranded(&self) -> Option<String> {
        let nodes = match read::nodes(self.control.view()) {
            Ok(nodes) => nodes,
            Err(fault) => return Some(unreadable(&fault)),
        };
        let present = |id: &&NodeId| {
            let node = nodes.iter().find(|node| node.id == **id);
            node.is_some_and(|node| node.state != NodeState::Replaced)
        };
        self.wrong(
            |placement| {
                placement.voters.iter().filter(present).count() * 2 <= placement.voters.len()
            },
            "what was lost with its disks was the majority of",
        )
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

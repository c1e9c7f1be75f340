//! What goes wrong in a simulation: which kinds there are, and when a seed has them begin and end.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::chance::Chance;

/// What can go wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// A process ends at once. What it had handed to the disk stays.
    Kill,
    /// The power of a node goes: what was not synced is lost, and nobody is told.
    PowerLoss,
    /// The power of all nodes of a region goes.
    RegionLoss,
    /// A process is told to stop, and started again.
    Restart,
    /// Two nodes don't hear each other.
    Cut,
    /// One node does not hear another, which hears it.
    CutOneWay,
    /// A node hears no other.
    Isolate,
    /// A region hears no other.
    IsolateRegion,
    /// What two nodes send to each other arrives only when the fault is over.
    Hold,
    /// What two nodes send to each other takes long.
    SlowLink,
    /// A disk takes long.
    SlowDisk,
    /// A disk has little room, or none.
    FullDisk,
    /// A disk fails, and with it the process.
    BrokenDisk,
    /// The wall clock of a node jumps, and stays so.
    ClockJump,
    /// One more node joins the cluster.
    Join,
    /// A node is sent away for good.
    Leave,
    /// The disk of a node is gone with everything on it, and another node comes in its place.
    LostDisk,
}

impl Kind {
    /// All of them.
    pub const ALL: [Kind; 17] = [
        Kind::Kill,
        Kind::PowerLoss,
        Kind::RegionLoss,
        Kind::Restart,
        Kind::Cut,
        Kind::CutOneWay,
        Kind::Isolate,
        Kind::IsolateRegion,
        Kind::Hold,
        Kind::SlowLink,
        Kind::SlowDisk,
        Kind::FullDisk,
        Kind::BrokenDisk,
        Kind::ClockJump,
        Kind::Join,
        Kind::Leave,
        Kind::LostDisk,
    ];

    /// Those that leave the cluster as it was.
    const PASSING: usize = 14;
}

/// One thing that goes wrong.
#[derive(Clone, Debug)]
pub(super) struct Fault {
    pub(super) kind: Kind,
    /// Counted from when the load begins.
    pub(super) from: Duration,
    pub(super) until: Duration,
    /// The node that it befalls, and another one where it is between two.
    pub(super) node: usize,
    pub(super) other: usize,
    /// Decides what else is to be decided.
    pub(super) seed: u64,
}

/// Draws the faults of one run. Each run has its own few kinds, since everything at once hides what
/// only shows in quiet; some have none at all.
pub(super) fn draw(chance: &mut Chance, nodes: usize, load: Duration) -> Vec<Fault> {
    let kinds: Vec<_> = Kind::ALL[..Kind::PASSING]
        .iter()
        .copied()
        .filter(|_| chance.percent(30))
        .collect();
    let every = chance.between(Duration::from_millis(500), Duration::from_secs(8));
    let mut faults = Vec::new();
    let mut from = chance.between(Duration::ZERO, every);
    while from < load && !kinds.is_empty() {
        let node = chance.below(nodes as u64) as usize;
        let distance = 1 + chance.below(nodes as u64 - 1) as usize;
        let lasts = chance.up_to(Duration::from_secs(15)) + Duration::from_millis(20);
        faults.push(Fault {
            kind: kinds[chance.below(kinds.len() as u64) as usize],
            from,
            until: from + lasts,
            node,
            other: (node + distance) % nodes,
            seed: chance.below(u64::MAX),
        });
        from += chance.between(Duration::ZERO, 2 * every);
    }
    faults
}

/// Draws the nodes that come and go. Of the disks of a cluster one is lost at most: with two, what
/// was answered may be lost. In a region of one node a shard that never leaves the region is lost
/// with the disk, and while a group has no leader no node can leave.
pub(super) fn draw_changes(
    chance: &mut Chance,
    (nodes, per_region): (usize, u16),
    load: Duration,
) -> Vec<Fault> {
    let mut kinds = Vec::new();
    if chance.percent(25) {
        kinds.push(Kind::LostDisk);
    }
    let may_leave = per_region > 2 || kinds.is_empty();
    if chance.percent(40) && may_leave {
        kinds.extend((0..=chance.below(2)).map(|_| Kind::Join));
    }
    let change = |kind| {
        let from = chance.between(Duration::ZERO, load);
        Fault {
            kind,
            from,
            until: from + chance.between(Duration::from_secs(1), Duration::from_secs(15)),
            node: chance.below(nodes as u64) as usize,
            other: 0,
            seed: chance.below(u64::MAX),
        }
    };
    kinds.into_iter().map(change).collect()
}

/// How many faults of each kind began, and how many had an effect.
#[derive(Clone, Debug, Default)]
pub struct Tally(BTreeMap<Kind, Count>);

/// How many faults of a kind there were.
#[derive(Clone, Copy, Debug, Default)]
pub struct Count {
    /// That began.
    pub begun: u32,
    /// Of these, how many were seen to do something: a process ended, messages were lost or held
    /// up, a disk was used. The rest came where nothing was to be disturbed.
    pub felt: u32,
}

impl Tally {
    pub(super) fn begins(&mut self, kind: Kind) {
        self.0.entry(kind).or_default().begun += 1;
    }

    pub(super) fn is_felt(&mut self, kind: Kind) {
        self.0.entry(kind).or_default().felt += 1;
    }

    /// By kind.
    pub fn iter(&self) -> impl Iterator<Item = (Kind, Count)> {
        self.0.iter().map(|(kind, count)| (*kind, *count))
    }
}

//! What a seed chooses before it begins.

use std::time::Duration;

use super::faults::{self, Fault, Kind};
use crate::chance::Chance;

/// The regions of simulated clusters.
const REGIONS: [&str; 3] = ["north", "south", "west"];

/// Makes another stream of chance of a seed.
const MORE: u64 = 0x6d6f_7265;

/// How large a cluster is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    /// Nodes in each of the three regions when the cluster begins.
    pub nodes_per_region: u16,
    /// Whether anything goes wrong.
    pub faults: bool,
}

/// One run.
pub(super) struct Plan {
    pub(super) seed: u64,
    /// The nodes, by name, and the region of each. The first founds the cluster.
    pub(super) nodes: Vec<(String, &'static str)>,
    /// How many of them are there from the beginning; the others may come later.
    pub(super) begin: usize,
    pub(super) regions: [&'static str; 3],
    /// How long bytes take between two regions, and within one.
    pub(super) between_regions: Duration,
    pub(super) within_region: Duration,
    /// How long clients publish.
    pub(super) load: Duration,
    /// Keys of each publisher.
    pub(super) keys: u64,
    /// Between two publishes of one publisher, about.
    pub(super) publish_every: Duration,
    /// Between two moves of a key, about; `None` where no key is moved.
    pub(super) move_every: Option<Duration>,
    /// What goes wrong.
    pub(super) faults: Vec<Fault>,
}

impl Plan {
    /// Nodes in each region when the cluster begins.
    pub(super) fn per_region(&self) -> usize {
        self.begin / self.regions.len()
    }

    pub(super) fn new(seed: u64, size: Size) -> Self {
        let mut chance = Chance::new(seed);
        let millis = Duration::from_millis;
        let nodes = REGIONS.into_iter().flat_map(|region| {
            let numbers = 1..=size.nodes_per_region;
            numbers.map(move |number| (format!("{region}-{number}"), region))
        });
        let mut nodes: Vec<_> = nodes.collect();
        let begin = nodes.len();
        let load = Duration::from_secs(10 + chance.below(40));
        let mut faults = match size.faults {
            true => faults::draw(&mut chance, begin, load),
            false => Vec::new(),
        };
        // Of their own, so that what a seed chooses else stays when they change.
        let mut more = Chance::new(seed ^ MORE);
        let move_every = match more.percent(60) {
            true => Some(millis(50 + more.below(2_000))),
            false => None,
        };
        if size.faults {
            faults.extend(faults::draw_changes(
                &mut more,
                (begin, size.nodes_per_region),
                load,
            ));
        }
        if faults.iter().any(|fault| fault.kind == Kind::Join) {
            let number = size.nodes_per_region + 1;
            nodes.extend(REGIONS.map(|region| (format!("{region}-{number}"), region)));
        }
        Plan {
            seed,
            nodes,
            begin,
            faults,
            move_every,
            regions: REGIONS,
            between_regions: millis(40),
            within_region: millis(1),
            load,
            keys: 1 + chance.below(6),
            publish_every: millis(20 + chance.below(200)),
        }
    }
}

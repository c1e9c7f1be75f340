//! What a seed chooses before it begins.

use std::time::Duration;

use super::faults::{self, Fault};
use crate::chance::Chance;

/// The regions of simulated clusters.
const REGIONS: [&str; 3] = ["north", "south", "west"];

/// How large a cluster is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    /// Nodes in each of the three regions.
    pub nodes_per_region: u16,
    /// Whether anything goes wrong.
    pub faults: bool,
}

/// One run.
pub(super) struct Plan {
    pub(super) seed: u64,
    /// The nodes, by name, and the region of each. The first founds the cluster.
    pub(super) nodes: Vec<(String, &'static str)>,
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
    /// What goes wrong.
    pub(super) faults: Vec<Fault>,
}

impl Plan {
    pub(super) fn new(seed: u64, size: Size) -> Self {
        let mut chance = Chance::new(seed);
        let millis = Duration::from_millis;
        let nodes = REGIONS.into_iter().flat_map(|region| {
            let numbers = 1..=size.nodes_per_region;
            numbers.map(move |number| (format!("{region}-{number}"), region))
        });
        let nodes: Vec<_> = nodes.collect();
        let load = Duration::from_secs(10 + chance.below(40));
        let faults = match size.faults {
            true => faults::draw(&mut chance, nodes.len(), load),
            false => Vec::new(),
        };
        Plan {
            seed,
            nodes,
            faults,
            regions: REGIONS,
            between_regions: millis(40),
            within_region: millis(1),
            load,
            keys: 1 + chance.below(6),
            publish_every: millis(20 + chance.below(200)),
        }
    }
}

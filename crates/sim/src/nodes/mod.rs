//! Whole nodes in one thread from one seed: the same start-up code as the binary, on virtual time,
//! network and disk.
//!
//! - `plan`: what a seed chooses before it begins.
//! - `world`: nodes and clients, and the time in which they live.
//! - `faults`, `trouble`: what goes wrong, and when; how it begins and ends.
//! - `member`: a node, process after process.
//! - `disk`, `network`: what it finds around it.
//! - `client`: who publishes and consumes.
//! - `recorder`: what they did and saw.
//! - `verdict`: what is to be said of it.
//!
//! The process must draw all its randomness and time from the seed, which this crate can't see to:
//! the program `orderly-sim-nodes` does, and runs one seed.

mod client;
mod disk;
mod faults;
mod member;
mod network;
mod plan;
mod recorder;
mod trouble;
mod verdict;
mod world;

pub use faults::{Count, Kind, Tally};
pub use plan::Size;
pub use verdict::Verdict;

use std::time::Duration;

use client::Phase;
use plan::Plan;
use world::World;

use crate::history::What;

/// How long a cluster may take from nothing to the first subscription.
const BEGINNING_MAX: Duration = Duration::from_secs(60);
/// How long after the last fault nobody can expect to be served at once: nodes come up, leases run
/// out, leaderships go home.
const RECOVERY_MAX: Duration = Duration::from_secs(20);
/// How long everything that was published may take to be acknowledged from then on.
const DRAIN_MAX: Duration = Duration::from_secs(60);
/// A drained cluster must stay so for so long: what was acknowledged in vain comes again by then.
const QUIET: Duration = Duration::from_secs(15);
/// How long replicas may take to agree, once nothing happens any more.
const AGREEMENT_MAX: Duration = Duration::from_secs(20);
/// How often that is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// Runs a cluster from a seed: load while things go wrong, and then until all of it is acknowledged.
///
/// # Panics
/// When a part of a node panics.
#[must_use]
pub fn run(seed: u64, size: Size) -> Verdict {
    let mut world = World::new(Plan::new(seed, size));
    let begun = world.run_until(BEGINNING_MAX, |world| world.phase() == Phase::Load);
    let mut drained = false;
    if begun {
        world.run_load();
        world.run_until(RECOVERY_MAX, |_| false);
        world.note(What::Up);
        drained = drain(&mut world);
        agree(&mut world);
    }
    world.verdict(begun, drained)
}

/// Whether everything was acknowledged in time.
fn drain(world: &mut World<'_>) -> bool {
    let deadline = world.elapsed() + DRAIN_MAX;
    loop {
        let left = deadline.saturating_sub(world.elapsed());
        if !world.run_until(left, |world| world.unsettled() == 0) {
            return false;
        }
        if !world.run_until(QUIET, |world| world.unsettled() > 0) {
            return true;
        }
    }
}

/// Waits until replicas agree, as long as they may take; the verdict says whether they do.
fn agree(world: &mut World<'_>) {
    let deadline = world.elapsed() + AGREEMENT_MAX;
    while !world.agrees() && world.elapsed() < deadline {
        world.run_until(LOOK_EVERY, |_| false);
    }
}

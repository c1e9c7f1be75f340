//! Whole nodes in one thread from one seed: the same start-up code as the binary, on virtual time,
//! network and disk.
//!
//! - `plan`: what a seed chooses before it begins.
//! - `world`: nodes and clients, and the time in which they live.
//! - `faults`, `trouble`: what goes wrong, and when; how it begins and ends.
//! - `churn`: nodes that come and go.
//! - `member`: a node, process after process.
//! - `disk`, `network`: what it finds around it.
//! - `client`: who publishes, consumes and operates.
//! - `moves`: keys are moved.
//! - `recorder`: what they did and saw.
//! - `verdict`: what is to be said of it.
//!
//! `cargo xtask sim --seed N` runs a seed, `--seeds K` runs K from there on, `--nodes 9` with nine
//! nodes instead of three, `--calm` without faults. The same seed, size and program give the same
//! bytes always; another program gives another run.
//!
//! The process must draw all its randomness and time from the seed, which this crate can't see to:
//! the program `orderly-sim-nodes` does, and runs one seed.

mod churn;
mod client;
mod disk;
mod faults;
mod member;
mod moves;
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
use world::{Reached, World};

use crate::history::What;

/// How long a cluster may take from nothing to the first subscription.
const BEGINNING_MAX: Duration = Duration::from_secs(60);
/// How long nodes may take to come and go, and keys to move, once all faults are over.
const SETTLING_MAX: Duration = Duration::from_secs(90);
/// How long after that nobody can expect to be served at once: nodes come up, leases run
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
    let reached = go_through(&mut world);
    if reached >= Reached::Settled {
        agree(&mut world);
    }
    world.verdict(reached)
}

fn go_through(world: &mut World<'_>) -> Reached {
    if !world.run_until(BEGINNING_MAX, |world| world.phase() == Phase::Load) {
        return Reached::Nothing;
    }
    world.run_load();
    if !world.run_until(SETTLING_MAX, World::is_settled) {
        return Reached::Load;
    }
    if world.has_faults() {
        world.run_until(RECOVERY_MAX, |_| false);
        world.note(What::Up);
    }
    match drain(world) {
        true => Reached::Drained,
        false => Reached::Settled,
    }
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

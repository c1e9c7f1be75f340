//! `sim`: simulated clusters of whole nodes, each from one seed in a process of its own.
//!
//! `--seed N` begins with that seed, `--seeds N` runs so many, counting up. Everything else goes to
//! the simulator: `--help` tells what it knows, as `--nodes 9` for a larger cluster and `--trace FILE`
//! for everything that its clients did and saw.

use std::path::Path;
use std::time::SystemTime;

use anyhow::{Context, bail};

use crate::child;

/// What runs one seed.
const SIMULATOR: [&str; 6] = [
    "run",
    "--quiet",
    "--package=orderly-sim",
    "--features=nodes",
    "--bin=orderly-sim-nodes",
    "--",
];

/// Runs seeds until one fails, and says how to run that one again.
pub(crate) fn run(root: &Path, arguments: &[String]) -> anyhow::Result<()> {
    let mut options = arguments.to_vec();
    let first = take(&mut options, "--seed")?;
    let first = first.unwrap_or_else(chosen_by_the_clock);
    let seeds = take(&mut options, "--seeds")?.unwrap_or(1);
    for seed in first..first.saturating_add(seeds) {
        let mut simulator = child::cargo(root, &SIMULATOR)?;
        simulator.arg(format!("--seed={seed}")).args(&options);
        let status = simulator.status().context("the simulator does not start")?;
        if !status.success() {
            let options = options.join(" ");
            bail!("seed {seed} failed; again: cargo xtask sim --seed {seed} {options}");
        }
    }
    Ok(())
}

/// Takes an option with a number out of the arguments.
fn take(arguments: &mut Vec<String>, option: &str) -> anyhow::Result<Option<u64>> {
    let Some(place) = arguments.iter().position(|argument| argument == option) else {
        return Ok(None);
    };
    let taken: Vec<_> = arguments
        .drain(place..(place + 2).min(arguments.len()))
        .collect();
    let number = taken.get(1).and_then(|number| number.parse().ok());
    number
        .map(Some)
        .with_context(|| format!("{option} needs a number"))
}

fn chosen_by_the_clock() -> u64 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    now.map_or(1, |now| now.as_nanos() as u64)
}

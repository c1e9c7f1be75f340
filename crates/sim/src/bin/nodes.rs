//! Runs a simulated cluster of whole nodes from one seed, and says what it found.
//!
//! One process runs one seed: before anything else, all that the process will ever take for random
//! comes from the seed, and all that it takes for time from the simulation. That reaches into the
//! libraries too, whose hash maps and clocks would differ from run to run.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use mad_turmoil::rand::set_rng;
use mad_turmoil::time::SimClocksGuard;
use rand_of_libraries::SeedableRng;
use rand_of_libraries::rngs::StdRng;
use sim::nodes::{self, Size};

#[derive(Parser)]
#[command(about = "Runs a simulated cluster of whole nodes, and checks every promise.")]
struct Arguments {
    /// The seed.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Nodes in three regions together, as many in each.
    #[arg(long, default_value_t = 3, value_parser = thirds)]
    nodes: u16,
    /// Nothing goes wrong.
    #[arg(long)]
    calm: bool,
    /// Where everything that clients did and saw is written.
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
}

/// A number of nodes that three regions can share.
fn thirds(text: &str) -> Result<u16, String> {
    match text.parse() {
        Ok(nodes @ 3..=15) if nodes % 3 == 0 => Ok(nodes),
        _ => Err("it is 3, 6, 9, 12 or 15".to_owned()),
    }
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    set_rng(StdRng::seed_from_u64(arguments.seed));
    let clocks = SimClocksGuard::init();
    node::panics::end_process();
    tracing_subscriber::fmt()
        .with_env_filter(tracing_subscriber::EnvFilter::from_env("ORDERLY_LOG"))
        .with_writer(std::io::stderr)
        .with_ansi(false)
        .init();
    let size = Size {
        nodes_per_region: arguments.nodes / 3,
        faults: !arguments.calm,
    };
    let verdict = nodes::run(arguments.seed, size);
    drop(clocks);
    if let Some(file) = &arguments.trace {
        std::fs::write(file, &verdict.trace).expect("the trace can be written");
    }
    eprintln!(
        "seed {}: {:?} of virtual time, {} stored, {} delivered, trace {:016x}",
        arguments.seed,
        verdict.elapsed,
        verdict.stored,
        verdict.delivered,
        verdict.hash(),
    );
    for effect in verdict.effects() {
        eprintln!("  {effect}");
    }
    for wrong in &verdict.wrong {
        eprintln!("{wrong}");
    }
    match verdict.wrong.is_empty() {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    }
}

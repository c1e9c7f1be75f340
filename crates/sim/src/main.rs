//! The simulator's command line: tries seeds until one breaks a promise.
//!
//! `cargo run -p orderly-sim -- --seeds 1000` tries a thousand seeds, beginning with `--seed`. The
//! first that fails is printed with the command that repeats it.

use std::panic::catch_unwind;
use std::process::ExitCode;

use clap::Parser;

#[derive(Parser)]
#[command(about = "Runs simulated clusters and checks every promise.")]
struct Arguments {
    /// The first seed.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// How many seeds, counting up.
    #[arg(long, default_value_t = 1)]
    seeds: u64,
    /// How many happenings of each seed, before it is drained.
    #[arg(long, default_value_t = 5_000)]
    steps: u64,
    /// Prints the history of each seed.
    #[arg(long)]
    history: bool,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let mut events = 0;
    for seed in arguments.seed..arguments.seed + arguments.seeds {
        match try_seed(seed, &arguments) {
            Ok(seen) => events += seen,
            Err(failure) => {
                eprintln!("seed {seed} failed: {failure}");
                let steps = arguments.steps;
                eprintln!("again: cargo run -p orderly-sim -- --seed {seed} --steps {steps}");
                return ExitCode::FAILURE;
            }
        }
    }
    eprintln!("{} seeds passed: {events} events", arguments.seeds);
    ExitCode::SUCCESS
}

/// How many events the seed had, or what is wrong with it.
fn try_seed(seed: u64, arguments: &Arguments) -> Result<usize, String> {
    // The panic has printed its message by then.
    let run = catch_unwind(|| sim::run(seed, arguments.steps));
    let run = run.map_err(|_| "it panicked".to_owned())?;
    if arguments.history {
        for (number, event) in run.history.events.iter().enumerate() {
            eprintln!("{number} {event:?}");
        }
    }
    match &run.violations[..] {
        [] => Ok(run.history.events.len()),
        violations => {
            let lines: Vec<_> = violations.iter().map(ToString::to_string).collect();
            Err(lines.join("\n"))
        }
    }
}

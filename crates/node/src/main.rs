//! The binary `orderly`: a node, and the commands that talk to one.

use std::process::ExitCode;

use clap::Parser;
use node::cli::{Cli, run};

fn main() -> ExitCode {
    let cli = Cli::parse();
    match run(cli) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("orderly: {failure}");
            failure.exit_code()
        }
    }
}

//! `orderly completions`: what a shell needs to complete these commands.

use clap::{Args, CommandFactory};
use clap_complete::{Shell, generate};

use super::{Cli, Failure};

#[derive(Debug, Args)]
pub(crate) struct Completions {
    /// The shell; for bash, add `source <(orderly completions bash)` to `~/.bashrc`.
    shell: Shell,
}

impl Completions {
    pub(crate) fn run(&self) -> Result<(), Failure> {
        let mut script = Vec::new();
        generate(self.shell, &mut Cli::command(), "orderly", &mut script);
        super::output::print_bytes(&script);
        Ok(())
    }
}

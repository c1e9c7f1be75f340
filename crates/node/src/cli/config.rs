//! `orderly config`: looks at configuration files.

use std::path::PathBuf;

use clap::Subcommand;

use super::Failure;
use super::output::print_line;
use crate::config::Config;

/// What is done with a configuration file.
#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Says whether a node would accept a file, and if not, what would be right.
    Check {
        /// The file.
        file: PathBuf,
    },
}

impl ConfigCommand {
    pub(crate) fn run(self) -> Result<(), Failure> {
        let ConfigCommand::Check { file } = self;
        let config = Config::read(&file)?;
        print_line(&format!(
            "{}: a node \"{}\" in region \"{}\", zone \"{}\"",
            file.display(),
            config.node,
            config.region,
            config.zone
        ));
        Ok(())
    }
}

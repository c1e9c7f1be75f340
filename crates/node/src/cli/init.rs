//! `orderly init`: founds a cluster. Nothing else does: a node whose folder is empty, or whose
//! peers are silent, waits.

use std::path::PathBuf;

use clap::Args;

use super::Failure;
use super::output::print_line;
use crate::config::Config;
use crate::start::{self, Environment};

#[derive(Debug, Args)]
pub(crate) struct Init {
    /// The configuration of the first node. Its data folder must be empty or new.
    #[arg(long, value_name = "FILE")]
    config: PathBuf,
    /// The shards that each region gets.
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..=100))]
    shards_per_region: u16,
    /// The groups that know where keys are; a cluster keeps their number.
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u16).range(1..=64))]
    registries: u16,
}

impl Init {
    pub(crate) fn run(self) -> Result<(), Failure> {
        let config = Config::read(&self.config)?;
        let mut settings = config.settings();
        settings.shards = self.shards_per_region;
        settings.registries = self.registries;
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .enable_all()
            .build()
            .map_err(Failure::Runtime)?;
        let cluster =
            runtime.block_on(async { start::init(&settings, &Environment::machine()).await })?;
        print_line(&format!("Cluster {cluster} is founded."));
        print_line("Start its first node:");
        print_line(&format!(
            "  orderly serve --config {}",
            self.config.display()
        ));
        print_line("Other nodes join it: name this one in their \"join\", and start them.");
        Ok(())
    }
}

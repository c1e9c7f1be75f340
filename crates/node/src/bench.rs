//! `orderly bench`: load on any Pub/Sub endpoint, measured and checked.
//!
//! - [`options`]: what load. [`load`]: one run of it.
//! - [`resources`]: its topic and subscriptions.
//! - [`pace`], [`keys`], [`payload`], [`publisher`]: when, in which order, what, and how it is sent.
//! - [`consumer`], [`delivery`], [`acks`]: how it arrives.
//! - [`order`], [`account`]: what is checked.
//! - [`meter`], [`memory`], [`progress`], [`report`]: what is measured, and said of it.
//! - [`suite`]: the rows of the speed table, one after another.

mod account;
mod acks;
mod consumer;
mod delivery;
mod keys;
mod load;
mod memory;
mod meter;
mod options;
mod order;
mod pace;
mod payload;
mod progress;
mod publisher;
mod report;
mod resources;
mod suite;

use clap::{Args, Subcommand};

use crate::cli::{Failure, Format, Target};
use options::Options;
use resources::Resources;
use suite::Suite;

/// The command.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Bench {
    #[command(flatten)]
    options: Options,
    #[command(subcommand)]
    instead: Option<Instead>,
}

#[derive(Debug, Subcommand)]
enum Instead {
    /// Measures every row of the speed table against nodes of its own.
    Suite(Suite),
}

impl Bench {
    /// Runs the load and prints its report.
    pub(crate) fn run(&self, target: &Target, output: Format) -> Result<(), Failure> {
        if let Some(Instead::Suite(suite)) = &self.instead {
            return suite.run();
        }
        self.options.check()?;
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(self.options.threads)
            .enable_all()
            .build();
        runtime
            .map_err(Failure::Runtime)?
            .block_on(self.measure(target, output))
    }

    /// Deletes what it created, however the run ends.
    async fn measure(&self, target: &Target, output: Format) -> Result<(), Failure> {
        let resources = Resources::create(target, &self.options).await?;
        let ended = tokio::select! {
            ended = load::run(target, &self.options, &resources) => ended,
            _ = tokio::signal::ctrl_c() => Err(Failure::Interrupted),
        };
        if !self.options.keep {
            resources.delete().await?;
        }
        let report = ended?;
        report.print(output);
        report.verdict()
    }
}

//! `orderly bench`: load on any Pub/Sub endpoint, measured and checked.
//!
//! - [`options`]: what load. [`load`]: one run of it.
//! - [`resources`]: its topic and subscriptions.
//! - [`pace`], [`keys`], [`payload`], [`publisher`]: when, in which order, what, and how it is sent.
//! - [`consumer`], [`delivery`], [`acks`]: how it arrives.
//! - [`order`], [`account`]: what is checked.
//! - [`meter`], [`progress`], [`report`]: what is said of it.

mod account;
mod acks;
mod consumer;
mod delivery;
mod keys;
mod load;
mod meter;
mod options;
mod order;
mod pace;
mod payload;
mod progress;
mod publisher;
mod report;
mod resources;

use clap::Args;

use crate::cli::{Failure, Format, Target};
use options::Options;
use resources::Resources;

/// The command.
#[derive(Debug, Args)]
pub(crate) struct Bench {
    #[command(flatten)]
    options: Options,
}

impl Bench {
    /// Runs the load and prints its report.
    pub(crate) fn run(&self, target: &Target, output: Format) -> Result<(), Failure> {
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

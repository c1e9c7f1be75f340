//! The command line. Its grammar follows gcloud's, so that fingers need not learn another.

pub(crate) mod access;
mod certificates;
mod completions;
mod config;
mod endpoint;
mod failure;
mod fields;
mod init;
pub(crate) mod interrupt;
mod keys;
mod labels;
mod nodes;
pub(crate) mod output;
mod regions;
pub(crate) mod resource;
mod serve;
pub(crate) mod session;
mod shards;
mod subscriptions;
mod tail;
mod topics;

use crate::bench::Bench;
use crate::demo::Demo;
use crate::drill::Drill;
use clap::{Parser, Subcommand};

use access::Access;
pub use endpoint::Target;
pub use failure::Failure;
pub use output::Format;

/// Ordered messages on your own machines, over the Google Cloud Pub/Sub API.
#[derive(Debug, Parser)]
#[command(name = "orderly", version, propagate_version = true)]
pub struct Cli {
    #[command(flatten)]
    target: Target,
    /// How results are printed.
    #[arg(short, long, global = true, value_enum, default_value_t = Format::Table)]
    output: Format,
    #[command(flatten)]
    access: Access,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Runs a node.
    Serve(serve::Serve),
    /// Founds a cluster with its first node, and nothing else does.
    Init(init::Init),
    /// Makes the certificates that nodes prove to each other who they are with.
    #[command(subcommand)]
    Certificates(certificates::Certificates),
    /// Looks at configuration files.
    #[command(subcommand)]
    Config(config::ConfigCommand),
    /// Runs a whole cluster on this machine, for a first look.
    Demo(Box<Demo>),
    /// Loses a region or a node under load, and says whether every promise was kept.
    #[command(subcommand)]
    Drill(Box<Drill>),
    /// Says where ordering keys are, and moves them.
    Keys(Box<keys::Keys>),
    /// Lists the nodes of the cluster; brings them to rest, sends them away, replaces them.
    Nodes(Box<nodes::Nodes>),
    /// Lists the regions of the cluster, and says what is lost with each.
    Regions(Box<regions::Regions>),
    /// Lists the shards, which hold the messages, and adds more.
    Shards(Box<shards::Shards>),
    /// Creates, lists, changes and deletes topics, and publishes to them.
    #[command(subcommand)]
    Topics(topics::Topics),
    /// Creates, lists, changes and deletes subscriptions, and pulls from them.
    #[command(subcommand)]
    Subscriptions(subscriptions::Subscriptions),
    /// Prints the messages of a subscription as they come, and acknowledges them.
    Tail(tail::Tail),
    /// Puts load on a node through the public API, measures it and checks what arrives.
    Bench(Box<Bench>),
    /// Prints a script that lets a shell complete these commands.
    Completions(completions::Completions),
}

impl Command {
    /// Whether it talks to where a node listens for operators.
    fn is_for_operators(&self) -> bool {
        matches!(
            self,
            Command::Drill(_)
                | Command::Keys(_)
                | Command::Nodes(_)
                | Command::Regions(_)
                | Command::Shards(_)
        )
    }
}

/// Runs one command.
///
/// # Errors
/// [`Failure`], which says what to do next and how to exit.
pub fn run(cli: Cli) -> Result<(), Failure> {
    let Cli {
        target,
        access,
        output,
        command,
    } = cli;
    if access.is_told() && !command.is_for_operators() {
        return Err(Failure::Usage(
            "--admin-endpoint, --ca, --certificate and --key are for drill, keys, nodes, regions \
             and shards"
                .into(),
        ));
    }
    match command {
        Command::Serve(serve) => serve.run(),
        Command::Init(init) => init.run(),
        Command::Certificates(certificates) => certificates.run(),
        Command::Config(config) => config.run(),
        Command::Demo(demo) => client(demo.run()),
        Command::Drill(drill) => client(drill.run(&target, &access, output)),
        Command::Completions(completions) => completions.run(),
        Command::Bench(bench) => bench.run(&target, output),
        Command::Keys(keys) => client(keys.run(&target, &access, output)),
        Command::Nodes(nodes) => client(nodes.run(&target, &access, output)),
        Command::Regions(regions) => client(regions.run(&target, &access, output)),
        Command::Shards(shards) => client(shards.run(&target, &access, output)),
        Command::Topics(topics) => client(topics.run(&target, output)),
        Command::Subscriptions(subscriptions) => client(subscriptions.run(&target, output)),
        Command::Tail(tail) => client(tail.run(&target, output)),
    }
}

/// Runs a command that talks to a node: one thread is enough for it.
fn client(command: impl Future<Output = Result<(), Failure>>) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    runtime.map_err(Failure::Runtime)?.block_on(command)
}

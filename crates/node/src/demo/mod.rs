//! A whole cluster on this machine, as real processes: for a first look, and for drills.
//!
//! - [`plan`]: who stands where, and the configuration of each node.
//! - [`cluster`]: the processes, from the founding to the end.
//! - [`process`]: one node as a process.
//! - [`story`]: what such a cluster can do, told message by message.

pub(crate) mod cluster;
pub(crate) mod plan;
mod process;
mod story;

use std::io::IsTerminal;
use std::path::PathBuf;

use clap::Args;

use crate::cli::Failure;
use crate::cli::interrupt::Interrupts;
use crate::cli::output::say_line;
use cluster::Cluster;
use plan::Plan;

/// A demonstration cluster.
#[derive(Debug, Args)]
pub(crate) struct Demo {
    /// Tells a story first: a region is lost and returns while a key is published and consumed.
    /// Without a terminal to stop it, the cluster ends with the story.
    #[arg(long)]
    show: bool,
    #[command(flatten)]
    plan: PlanArgs,
}

/// What a demonstration cluster is like.
#[derive(Clone, Debug, Args)]
pub(crate) struct PlanArgs {
    /// How many regions.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..=8))]
    pub(crate) regions: u16,
    /// How many nodes in each region.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..=9))]
    pub(crate) nodes: u16,
    /// Milliseconds of a round trip between regions, emulated between the nodes.
    #[arg(long, default_value_t = 80, value_name = "MILLISECONDS")]
    pub(crate) wan_round_trip_ms: u32,
    /// Where clients connect to the first node; other nodes have the ports after it.
    #[arg(long, default_value_t = 8085, value_parser = clap::value_parser!(u16).range(1024..=64_000))]
    pub(crate) port: u16,
    /// Where the nodes keep everything; kept afterwards. By default a temporary folder, which goes.
    #[arg(long, value_name = "FOLDER")]
    pub(crate) data_dir: Option<PathBuf>,
}

impl Demo {
    pub(crate) async fn run(self) -> Result<(), Failure> {
        let mut interrupts = Interrupts::listen()?;
        let mut cluster = Cluster::new(Plan::new(&self.plan)?);
        let ended = tokio::select! {
            ended = self.play(&mut cluster) => ended,
            () = interrupts.next() => Err(Failure::Interrupted),
        };
        if let Ok(Then::Serves) = ended {
            interrupts.next().await;
        }
        cluster.end(ended).await.map(drop)
    }

    async fn play(&self, cluster: &mut Cluster) -> Result<Then, Failure> {
        cluster.start().await?;
        if self.show {
            story::tell(cluster).await?;
            if !std::io::stdin().is_terminal() {
                return Ok(Then::Ends);
            }
        }
        greet(cluster.plan())?;
        Ok(Then::Serves)
    }
}

/// What a cluster does that has started, and told its story.
enum Then {
    Ends,
    /// Until it is told to end.
    Serves,
}

/// What a person reads once the cluster serves.
fn greet(plan: &Plan) -> Result<(), Failure> {
    say_line("The cluster serves. An endpoint in each region:")?;
    for region in plan.regions() {
        let port = region.nodes[0].port;
        let name = &region.name;
        say_line(&format!(
            "  {name:8} export PUBSUB_EMULATOR_HOST=localhost:{port}"
        ))?;
    }
    let (first, last) = (plan.first_port(), plan.last_port());
    say_line("Try next, in another terminal:")?;
    for command in [
        format!("orderly --endpoint localhost:{first} topics create orders"),
        format!(
            "orderly --endpoint localhost:{last} subscriptions create billing --topic orders \
             --enable-message-ordering"
        ),
        format!(
            "orderly --endpoint localhost:{first} topics publish orders --ordering-key customer-1 \
             --message paid"
        ),
        format!("orderly --endpoint localhost:{last} subscriptions pull billing --auto-ack"),
        format!("orderly --endpoint localhost:{first} nodes list"),
        format!("orderly --endpoint localhost:{first} regions list"),
        "orderly drill region-loss --demo --live".to_owned(),
    ] {
        say_line(&format!("  {command}"))?;
    }
    say_line("Ctrl-C stops the cluster.")
}

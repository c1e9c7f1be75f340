//! Drills: an audit workload through the real API, an event in the middle, and a verdict.
//!
//! - [`event`]: what happens to the cluster.
//! - [`leader`]: which node leads the load's keys.
//! - [`endpoints`]: how a client finds a node that is ready, as users' clients do.
//! - [`workload`]: publishers and consumers of the audit.
//! - [`acks`]: what they acknowledge, until it is known whether it counts.
//! - [`ledger`]: everything that they did and saw.
//! - [`verdict`]: what the ledger says about the promises.
//! - [`rounds`]: what the verdicts of a repeated drill say together.

mod acks;
mod endpoints;
mod event;
mod leader;
mod ledger;
mod message;
mod rounds;
mod verdict;
mod workload;

use std::sync::Arc;
use std::time::{Duration, Instant};

use clap::{Args, Subcommand};

use crate::cli::access::Access;
use crate::cli::output::{print_line, print_one};
use crate::cli::{Failure, Format, Target};
use endpoints::Endpoints;
use event::{Event, Stage, Whom};
use ledger::Ledger;
use rounds::Rounds;
use verdict::Verdict;
use workload::Workload;

/// What is drilled.
#[derive(Debug, Subcommand)]
pub(crate) enum Drill {
    /// Loses a whole region at once, and lets it return.
    RegionLoss(RegionLoss),
    /// Loses one node at once, and lets it return.
    NodeLoss(NodeLoss),
    /// Kills the node that leads most of the load's keys, and lets it return.
    LeaderLoss(OfLeader),
    /// Stops the node that leads most of the load's keys where it is, as a hung machine does, and
    /// lets it go on when --after is over: it does not know then that time has passed.
    LeaderPause(OfLeader),
    /// Asks a node or a region to end in good order, as an upgrade does, and lets it return. Fails
    /// also when clients notice more than they should: one publish in a thousand fails, or one takes
    /// a second.
    Drain(Drain),
    /// Restarts all nodes, one after another, as an upgrade does. Fails also when clients notice more
    /// than they should.
    RollingRestart(RollingRestart),
}

/// The loss of a region.
#[derive(Debug, Args)]
pub(crate) struct RegionLoss {
    /// The region; in a demonstration cluster by default the first.
    #[arg(long)]
    region: Option<String>,
    #[command(flatten)]
    common: Common,
}

/// The loss of a node.
#[derive(Debug, Args)]
pub(crate) struct NodeLoss {
    /// The node; in a demonstration cluster by default the first.
    #[arg(long)]
    node: Option<String>,
    #[command(flatten)]
    common: Common,
}

/// What happens to the node that leads most of the load's keys.
#[derive(Debug, Args)]
pub(crate) struct OfLeader {
    #[command(flatten)]
    access: Access,
    #[command(flatten)]
    common: Common,
}

/// A planned end.
#[derive(Debug, Args)]
pub(crate) struct Drain {
    /// The node; in a demonstration cluster by default the first.
    #[arg(long)]
    node: Option<String>,
    /// A whole region instead.
    #[arg(long, conflicts_with = "node")]
    region: Option<String>,
    #[command(flatten)]
    common: Common,
}

/// A restart of all nodes.
#[derive(Debug, Args)]
pub(crate) struct RollingRestart {
    #[command(flatten)]
    common: Common,
}

/// What all drills can be told.
#[derive(Clone, Debug, Args)]
pub(crate) struct Common {
    /// Starts a demonstration cluster for the drill, and stops it afterwards.
    #[arg(long)]
    demo: bool,
    /// Causes the event. Without it the drill only says what it would do.
    #[arg(long, conflicts_with = "dry_run")]
    live: bool,
    /// Says what the drill would do, and does nothing.
    #[arg(long)]
    dry_run: bool,
    /// Nodes that clients may use, as host:port, in the order in which they are tried. By default
    /// the one of --endpoint.
    #[arg(long, value_delimiter = ',', value_name = "HOST:PORT,...")]
    endpoints: Vec<String>,
    /// The command that causes the event; it finds ORDERLY_DRILL_EVENT and ORDERLY_DRILL_TARGET in
    /// its environment. Not for a demonstration cluster.
    #[arg(long, value_name = "COMMAND")]
    hook: Option<String>,
    /// The command that ends the event.
    #[arg(long, value_name = "COMMAND")]
    undo_hook: Option<String>,
    /// Seconds of load before the event.
    #[arg(long, default_value_t = 5, value_name = "SECONDS")]
    before: u64,
    /// Seconds of load after the event.
    #[arg(long, default_value_t = 12, value_name = "SECONDS")]
    after: u64,
    /// Ordering keys, spread over the endpoints' regions.
    #[arg(long, default_value_t = 24, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    keys: u32,
    /// Messages that each key gets in a second, at most.
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    rate: u32,
    /// How often the drill is done, one round after the other in the same cluster.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1_000), value_name = "ROUNDS")]
    repeat: u32,
    #[command(flatten)]
    plan: crate::demo::PlanArgs,
}

impl Drill {
    pub(crate) async fn run(self, target: &Target, output: Format) -> Result<(), Failure> {
        let (event, common) = self.event();
        let stage = Stage::prepare(event, &common, target).await?;
        if common.dry_run || !common.live {
            print_line(&plan(&stage, &common));
            return Ok(());
        }
        let rounds = repeat(stage, &common, target).await?;
        match rounds.only() {
            Some(only) => print_one(output, only),
            None => print_one(output, &rounds),
        }
        match rounds.pass() {
            true => Ok(()),
            false => Err(Failure::Check("the drill has failed".into())),
        }
    }

    fn event(self) -> (Event, Common) {
        match self {
            Drill::RegionLoss(RegionLoss { region, common }) => {
                (Event::Loss(Whom::Region(region)), common)
            }
            Drill::NodeLoss(NodeLoss { node, common }) => (Event::Loss(Whom::Node(node)), common),
            Drill::LeaderLoss(OfLeader { access, common }) => {
                (Event::Loss(Whom::Leader(Box::new(access))), common)
            }
            Drill::LeaderPause(OfLeader { access, common }) => {
                (Event::Pause(Whom::Leader(Box::new(access))), common)
            }
            Drill::Drain(Drain {
                node,
                region: None,
                common,
            }) => (Event::Drain(Whom::Node(node)), common),
            Drill::Drain(Drain { region, common, .. }) => {
                (Event::Drain(Whom::Region(region)), common)
            }
            Drill::RollingRestart(RollingRestart { common }) => (Event::RollingRestart, common),
        }
    }
}

/// What would be done.
fn plan(stage: &Stage, common: &Common) -> String {
    let Common {
        keys,
        rate,
        before,
        after,
        ..
    } = common;
    let place = match common.demo {
        true => "start a demonstration cluster\n",
        false => "",
    };
    format!(
        "{place}create a topic and two ordered subscriptions, one of them exactly-once\n\
         publish to {keys} keys, up to {rate} messages a second each, and consume, through {}\n\
         after {before} s: {}\n\
         {after} s later: undo it, and wait until everything is delivered\n\
         say what was lost, out of order or repeated, and how long the service was away\n\
         Nothing was done: add --live to do it.",
        stage.endpoints().join(", "),
        stage.describe(),
    )
}

/// All rounds, one after the other. One that can't be done ends them: nobody knows how the cluster
/// is then.
///
/// # Errors
/// [`Failure`] when not even the first could be done.
async fn repeat(mut stage: Stage, common: &Common, target: &Target) -> Result<Rounds, Failure> {
    let mut rounds = Rounds::of(common.repeat as usize);
    for round in 1..=common.repeat {
        let verdict = match perform(&mut stage, common, target).await {
            Ok(verdict) => verdict,
            Err(failure) if round == 1 => return Err(failure),
            Err(failure) => {
                tell(&format!("round {round} could not be done: {failure}"));
                rounds.break_off(failure.to_string());
                break;
            }
        };
        if common.repeat > 1 {
            let summary = verdict.summary();
            tell(&format!("round {round} of {}: {summary}", common.repeat));
        }
        rounds.add(verdict);
    }
    stage.close().await;
    Ok(rounds)
}

/// The drill itself: load, event, load, the end of the event, and everything delivered.
async fn perform(stage: &mut Stage, common: &Common, target: &Target) -> Result<Verdict, Failure> {
    let ledger = Arc::new(Ledger::new(Instant::now()));
    let endpoints = Endpoints::new(stage.endpoints().to_vec());
    let workload = Workload::create(target, endpoints, common, Arc::clone(&ledger)).await?;
    let running = workload.start();
    tell("load is running");
    tokio::time::sleep(Duration::from_secs(common.before)).await;
    stage.aim(target, workload.topic()).await?;
    ledger.event();
    let what = stage.describe();
    stage.cause().await?;
    tell(&format!("{what}: done"));
    tokio::time::sleep(Duration::from_secs(common.after)).await;
    stage.undo().await?;
    tell("everything is back");
    running.stop_publishing().await;
    running.drain().await;
    ledger.over();
    workload.delete().await;
    Ok(ledger.verdict(&what, stage.is_planned()))
}

/// Says how far the drill is; results go elsewhere.
fn tell(what: &str) {
    eprintln!("drill: {what}");
}

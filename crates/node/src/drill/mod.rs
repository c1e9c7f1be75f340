//! Drills: an audit workload through the real API, an event in the middle, and a verdict.
//!
//! - [`round`]: one round of it, and how it is cleared up.
//! - [`plan`]: what would be done.
//! - [`event`]: what happens to the cluster.
//! - [`hooks`]: the commands that cause it where others run the cluster.
//! - [`operators`]: whom there is to lose.
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
mod hooks;
mod leader;
mod ledger;
mod message;
mod operators;
mod plan;
mod round;
mod rounds;
mod verdict;
mod workload;

use clap::{Arg, Args, Subcommand};

use crate::cli::access::Access;
use crate::cli::interrupt::Interrupts;
use crate::cli::output::{note, print_line, print_one};
use crate::cli::{Failure, Format, Target};
use event::{Event, Stage, Whom};
use plan::Plan;
use round::perform;
use rounds::Rounds;

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
// Of a cluster that is there already nothing of this can be said.
#[command(mut_args(of_demo))]
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
    #[arg(
        long,
        value_delimiter = ',',
        value_name = "HOST:PORT,...",
        conflicts_with = "demo"
    )]
    endpoints: Vec<String>,
    /// The command that causes the event; it finds ORDERLY_DRILL_EVENT and ORDERLY_DRILL_TARGET in
    /// its environment. What it prints goes to the error output.
    #[arg(long, value_name = "COMMAND", conflicts_with = "demo")]
    hook: Option<String>,
    /// The command that ends the event. It is run whatever else fails, and at Ctrl-C.
    #[arg(long, value_name = "COMMAND", requires = "hook")]
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

/// Options of a cluster that the drill starts.
const OF_DEMO: [&str; 5] = ["regions", "nodes", "wan_round_trip_ms", "port", "data_dir"];

/// Such an option goes with --demo only. What is required is not where it would conflict with what
/// is there, so that those conflicts have to be said too.
fn of_demo(option: Arg) -> Arg {
    match OF_DEMO.contains(&option.get_id().as_str()) {
        true => option
            .requires("demo")
            .conflicts_with_all(["hook", "endpoints"]),
        false => option,
    }
}

impl Common {
    /// Whether anything is done at all.
    fn is_live(&self) -> bool {
        self.live && !self.dry_run
    }
}

impl Drill {
    pub(crate) async fn run(
        self,
        target: &Target,
        access: &Access,
        output: Format,
    ) -> Result<(), Failure> {
        let (event, common) = self.event();
        heeds(&event, &common, target, access)?;
        let mut interrupts = Interrupts::listen()?;
        let mut stage = Stage::prepare(event, &common, target, access).await?;
        if !common.is_live() {
            let plan = Plan::of(&stage, &common);
            match output {
                Format::Table => print_line(&plan.text()),
                Format::Json => print_one(output, &plan),
            }
            return Ok(());
        }
        let mut rounds = Rounds::of(common.repeat as usize);
        let ended = repeat(&mut stage, &common, target, &mut interrupts, &mut rounds).await;
        let ended = stage.close(ended).await;
        match rounds.only() {
            Some(only) => print_one(output, only),
            None if rounds.any() => print_one(output, &rounds),
            None => {}
        }
        match ended {
            Ok(()) if !rounds.pass() => Err(Failure::Check("the drill has failed".into())),
            ended => ended,
        }
    }

    fn event(self) -> (Event, Common) {
        match self {
            Drill::RegionLoss(RegionLoss { region, common }) => {
                (Event::Loss(Whom::Region(region)), common)
            }
            Drill::NodeLoss(NodeLoss { node, common }) => (Event::Loss(Whom::Node(node)), common),
            Drill::LeaderLoss(OfLeader { common }) => (Event::Loss(Whom::Leader), common),
            Drill::LeaderPause(OfLeader { common }) => (Event::Pause(Whom::Leader), common),
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

/// Refuses what this drill would not heed.
fn heeds(event: &Event, common: &Common, target: &Target, access: &Access) -> Result<(), Failure> {
    let by = match (common.demo, event) {
        (true, _) => "with --demo",
        (false, Event::RollingRestart) => "by a rolling restart",
        (false, _) => return Ok(()),
    };
    let ignored = match (access.is_told(), target.is_told() && common.demo) {
        (true, _) => "--admin-endpoint, --ca, --certificate and --key are",
        (false, true) => "--endpoint is",
        (false, false) => return Ok(()),
    };
    Err(Failure::Usage(format!("{ignored} not used {by}")))
}

/// All rounds, one after the other. One that can't be done ends them: nobody knows how the cluster
/// is then.
///
/// # Errors
/// [`Failure`] when one could not be done.
async fn repeat(
    stage: &mut Stage,
    common: &Common,
    target: &Target,
    interrupts: &mut Interrupts,
    rounds: &mut Rounds,
) -> Result<(), Failure> {
    tokio::select! {
        opened = stage.open() => opened?,
        () = interrupts.next() => return Err(Failure::Interrupted),
    }
    for round in 1..=common.repeat {
        let verdict = perform(stage, common, target, interrupts).await;
        let verdict = verdict.inspect_err(|failure| {
            if common.repeat > 1 {
                tell(&format!("round {round} could not be done: {failure}"));
            }
            rounds.break_off(failure.to_string());
        })?;
        if common.repeat > 1 {
            let summary = verdict.summary();
            tell(&format!("round {round} of {}: {summary}", common.repeat));
        }
        rounds.add(verdict);
    }
    Ok(())
}

/// Says how far the drill is; results go elsewhere.
fn tell(what: &str) {
    note(&format!("drill: {what}"));
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use crate::cli::Cli;

    #[test]
    fn what_a_drill_would_not_heed_is_refused() {
        let parses = |typed: &str| {
            let typed = format!("orderly drill {typed}");
            Cli::try_parse_from(typed.split(' ')).is_ok()
        };
        assert!(parses("node-loss --node a --hook true --undo-hook true"));
        assert!(parses("node-loss --demo --regions 3 --nodes 1 --port 9000"));
        for odd in [
            "node-loss --node a --undo-hook true",
            "node-loss --node a --hook true --demo",
            "node-loss --demo --endpoints localhost:8085",
            "region-loss --region a --regions 3",
            "region-loss --region a --hook true --regions 3",
            "leader-loss --hook true --nodes 3",
            "rolling-restart --hook true --port 9000",
            "drain --node a --hook true --wan-round-trip-ms 3",
            "drain --node a --hook true --data-dir here",
            "drain --node a --region b --hook true",
        ] {
            assert!(!parses(odd), "{odd}");
        }
    }
}

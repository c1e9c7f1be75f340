//! `orderly shards`.
//!
//! - `verify`: asks all nodes what their replicas have come to.
//! - `compare`: whether those are alike.

mod compare;
mod verify;

use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};
use proto::admin::admin_client::AdminClient;
use proto::admin::{AddShardsRequest, ListShardsRequest, Shard, Survival};
use serde_json::{Value, json};
use tokio::time::sleep;
use tonic::transport::Channel;

use compare::Compared;
use verify::Verify;

use super::access::Access;
use super::output::{Progress, Show, print_one, print_rows};
use super::{Failure, Format, Target};

/// How often new shards are looked at.
const LOOK_EVERY: Duration = Duration::from_millis(250);

#[derive(Debug, Args)]
pub(crate) struct Shards {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Lists the shards.
    List,
    /// Shows a shard.
    Describe {
        /// Its name, as shard-7, or only its number.
        shard: String,
    },
    /// Gives a region more shards: keys that are new go to them too. Keys that are there stay.
    Add(Add),
    /// Compares what the nodes have of each group, of the control and the registry groups too, and
    /// fails where two differ. Each node reads all that it keeps, one group after another. Replicas
    /// can be compared only after the same entry: for a cluster at rest.
    Verify(Verify),
}

#[derive(Debug, Args)]
struct Add {
    /// The region.
    #[arg(long)]
    region: String,
    /// How many more.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    count: u32,
    /// What their messages are to survive.
    #[arg(long, value_enum, default_value_t = Goal::Region)]
    survival: Goal,
    /// Waits until they have leaders.
    #[arg(long)]
    wait: bool,
}

/// What the messages of a shard are to survive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Goal {
    /// The loss of a zone: all voters in the region.
    Zone,
    /// The loss of a region, as soon as there are three.
    Region,
}

impl Shards {
    pub(crate) async fn run(
        self,
        target: &Target,
        access: &Access,
        output: Format,
    ) -> Result<(), Failure> {
        let mut client = access.client(target).await?;
        match self.verb {
            Verb::List => print_rows(output, &list(&mut client).await?),
            Verb::Describe { shard } => {
                let shards = list(&mut client).await?;
                let name = format!("shard-{}", shard.trim_start_matches("shard-"));
                let known: Vec<String> = shards.iter().map(|it| it.name.clone()).collect();
                let not_found = || {
                    let known = known.join(", ");
                    let text = format!("shard \"{shard}\" not found: the shards are {known}");
                    Failure::NotFound(text)
                };
                let found = shards.into_iter().find(|it| it.name == name);
                print_one(output, &Whole(found.ok_or_else(not_found)?));
            }
            Verb::Add(add) => {
                let shards = add.run(&mut client).await?;
                print_rows(output, &shards);
            }
            Verb::Verify(verify) => {
                let compared = verify.run(access, target).await?;
                print_rows(output, &compared);
                if !compared.iter().all(Compared::is_alike) {
                    let text = "not all replicas are known to be alike".to_owned();
                    return Err(Failure::Check(text));
                }
            }
        }
        Ok(())
    }
}

impl Add {
    /// Adds them, and answers all shards of that kind in the region.
    async fn run(self, client: &mut AdminClient<Channel>) -> Result<Vec<Shard>, Failure> {
        let goal = match self.survival {
            Goal::Zone => Survival::Zone,
            Goal::Region => Survival::Region,
        };
        let request = AddShardsRequest {
            region: self.region.clone(),
            goal: goal.into(),
            count: self.count,
        };
        let wanted = client.add_shards(request).await?.into_inner().wanted as usize;
        let mut progress = Progress::default();
        loop {
            let mut shards = list(client).await?;
            shards.retain(|shard| shard.home == self.region && shard.goal() == goal);
            let led = shards.iter().filter(|shard| !shard.leader.is_empty());
            let led = led.count();
            if !self.wait || led >= wanted {
                return Ok(shards);
            }
            progress.say(&format!(
                "{}: {led} of {wanted} shards are led",
                self.region
            ));
            sleep(LOOK_EVERY).await;
        }
    }
}

async fn list(client: &mut AdminClient<Channel>) -> Result<Vec<Shard>, Failure> {
    let listed = client.list_shards(ListShardsRequest {}).await?;
    Ok(listed.into_inner().shards)
}

fn survival(survival: Survival) -> &'static str {
    match survival {
        Survival::Unspecified => "unknown",
        Survival::Nothing => "nothing",
        Survival::Node => "node",
        Survival::Zone => "zone",
        Survival::Region => "region",
    }
}

fn or_dash(leader: &str) -> String {
    match leader {
        "" => "-".to_owned(),
        leader => leader.to_owned(),
    }
}

impl Show for Shard {
    const COLUMNS: &'static [&'static str] = &["NAME", "HOME", "LEADER", "SURVIVES", "VOTERS"];

    fn cells(&self) -> Vec<String> {
        vec![
            self.name.clone(),
            self.home.clone(),
            or_dash(&self.leader),
            survival(self.survives()).to_owned(),
            self.voters_now.join(", "),
        ]
    }

    fn json(&self) -> Value {
        json!({
            "name": self.name,
            "home": self.home,
            "leader": self.leader,
            "goal": survival(self.goal()),
            "survives": survival(self.survives()),
            "voters": self.voters_now,
            "votersWanted": self.voters,
        })
    }
}

/// All that is known of a shard.
struct Whole(Shard);

impl Show for Whole {
    const COLUMNS: &'static [&'static str] = &[
        "NAME", "HOME", "LEADER", "GOAL", "SURVIVES", "VOTERS", "TO VOTE",
    ];

    fn cells(&self) -> Vec<String> {
        let shard = &self.0;
        vec![
            shard.name.clone(),
            shard.home.clone(),
            or_dash(&shard.leader),
            survival(shard.goal()).to_owned(),
            survival(shard.survives()).to_owned(),
            shard.voters_now.join(", "),
            shard.voters.join(", "),
        ]
    }

    fn json(&self) -> Value {
        self.0.json()
    }
}

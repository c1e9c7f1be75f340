//! Shards: where they are and what they survive; a region gets more of them.

use std::collections::BTreeSet;

use engine::control::read::{self, ShardDescription, Survives};
use engine::control::{AddShards, Command, Node, NodeRejected, Rejected, Reply};
use model::limits::SHARDS_PER_REGION_MAX;
use model::{GroupId, NodeId, SurvivalGoal};
use proto::admin::{self, Survival};
use replica::ControlClient;
use replica::control::LedGroup;

use super::known;
use super::refusal::Refusal;

/// All shards by number.
pub(super) async fn list(control: &ControlClient) -> Result<admin::ListShardsResponse, Refusal> {
    let view = control.read().await?;
    let nodes = read::nodes(view)?;
    let described = read::describe_shards(view)?;
    let survey = control.survey().await?;
    let message = |shard: ShardDescription| {
        let led = survey.groups.get(&GroupId::Shard(shard.number));
        message(&shard, led, &nodes)
    };
    Ok(admin::ListShardsResponse {
        shards: described.into_iter().map(message).collect(),
    })
}

/// A region gets more shards.
pub(super) async fn add(
    control: &ControlClient,
    request: admin::AddShardsRequest,
) -> Result<admin::AddShardsResponse, Refusal> {
    let goal = match request.goal() {
        Survival::Unspecified | Survival::Region => SurvivalGoal::Region,
        Survival::Zone => SurvivalGoal::Zone,
        Survival::Nothing | Survival::Node => {
            return Err(Refusal::Invalid(
                "a shard survives a zone or a region".into(),
            ));
        }
    };
    let count = u16::try_from(request.count)
        .ok()
        .filter(|count| (1..=SHARDS_PER_REGION_MAX).contains(count))
        .ok_or_else(|| Refusal::Invalid(format!("add 1 to {SHARDS_PER_REGION_MAX} shards")))?;
    let region = known::region(control.read().await?, &request.region)?.name;
    let command = Command::AddShards(AddShards {
        region: region.clone(),
        goal,
        count,
    });
    if let Reply::Rejected(why) = control.propose(command).await? {
        return Err(why.into());
    }
    let region_row = read::region(control.read().await?, &region)?;
    let missing = || Rejected::from(NodeRejected::NoSuchRegion(region));
    let wanted = region_row.ok_or_else(missing)?.shards(goal);
    Ok(admin::AddShardsResponse {
        wanted: u32::from(wanted),
    })
}

fn message(shard: &ShardDescription, led: Option<&LedGroup>, nodes: &[Node]) -> admin::Shard {
    let called = |ids: &BTreeSet<NodeId>| -> Vec<Node> {
        let named = nodes.iter().filter(|node| ids.contains(&node.id));
        named.cloned().collect()
    };
    let names = |nodes: &[Node]| nodes.iter().map(|node| node.name.to_string()).collect();
    let voters = led.map_or_else(Vec::new, |led| called(&led.voters));
    let leader = led.and_then(|led| nodes.iter().find(|node| node.id == led.leader));
    let goal = match shard.placement.goal {
        SurvivalGoal::Zone => Survival::Zone,
        SurvivalGoal::Region => Survival::Region,
    };
    // What is wanted may still be on its way.
    let survives = match led.map_or(shard.survives, |_| Survives::of(&voters)) {
        Survives::Nothing => Survival::Nothing,
        Survives::Node => Survival::Node,
        Survives::Zone => Survival::Zone,
        Survives::Region => Survival::Region,
    };
    admin::Shard {
        name: GroupId::Shard(shard.number).to_string(),
        home: shard.placement.home.to_string(),
        goal: goal.into(),
        survives: survives.into(),
        voters: names(&shard.voters),
        voters_now: names(&voters),
        leader: leader.map(|node| node.name.to_string()).unwrap_or_default(),
    }
}

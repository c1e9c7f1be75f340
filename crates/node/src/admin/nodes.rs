//! Nodes: what they do; how they come to rest, leave, and are replaced.

use std::collections::BTreeSet;
use std::time::Duration;

use engine::control::plan::{Consequence, departure};
use engine::control::read::{self, NodeDescription};
use engine::control::{Command, Node, NodeState, Reply, SetNodeState};
use model::{GroupId, NodeId};
use proto::admin;
use replica::ControlClient;
use replica::control::Survey;
use tokio::time::{Instant, sleep};

use super::refusal::Refusal;

/// A node that has been heard within this time is alive, and can't be replaced. It speaks each
/// second.
const ALIVE_WITHIN: Duration = Duration::from_secs(10);

/// How long an operator waits until it is known that a node's state is set.
const SET_STATE_MAX: Duration = Duration::from_secs(20);

/// The pause before it is set again.
const SET_AGAIN_AFTER: Duration = Duration::from_millis(50);

/// All nodes, and the groups that nobody is known to lead.
pub(super) async fn list(control: &ControlClient) -> Result<admin::ListNodesResponse, Refusal> {
    let view = control.read().await?;
    let described = read::describe_nodes(view)?;
    let groups = read::placements(view)?;
    let survey = control.survey().await?;
    let is_leaderless = |group: &GroupId| !survey.groups.contains_key(group);
    let leaderless = groups.iter().map(|it| it.group).filter(is_leaderless);
    Ok(admin::ListNodesResponse {
        leaderless: names(leaderless),
        nodes: described
            .iter()
            .map(|node| message(node, &survey))
            .collect(),
    })
}

/// Brings a node to rest.
pub(super) async fn drain(control: &ControlClient, asked: &str) -> Result<admin::Node, Refusal> {
    let node = find(control, asked).await?;
    match node.state {
        NodeState::Active | NodeState::Draining => {
            set_state(control, node.id, NodeState::Draining).await
        }
        _ => Err(refused(&node, "only an active node can be drained")),
    }
}

/// Lets a node take part again.
pub(super) async fn activate(control: &ControlClient, asked: &str) -> Result<admin::Node, Refusal> {
    let node = find(control, asked).await?;
    set_state(control, node.id, NodeState::Active).await
}

/// Lets a node leave for good, if the others can take what it has.
pub(super) async fn decommission(
    control: &ControlClient,
    asked: &str,
    force: bool,
) -> Result<admin::Node, Refusal> {
    let node = find(control, asked).await?;
    if node.state == NodeState::Replaced {
        let next = "it leaves by itself once a node has come in its place; start one";
        return Err(refused(&node, next));
    }
    if node.state != NodeState::Decommissioning {
        check_departure(control, &node, force).await?;
    }
    set_state(control, node.id, NodeState::Decommissioning).await
}

/// Frees the name and the place of a node whose disk is gone.
pub(super) async fn replace(control: &ControlClient, asked: &str) -> Result<admin::Node, Refusal> {
    let node = find(control, asked).await?;
    let survey = control.survey().await?;
    let silent = survey.silent.get(&node.id).copied().unwrap_or_default();
    if silent < ALIVE_WITHIN {
        return Err(Refusal::Harm(format!(
            "node \"{name}\" was heard {silent:.1?} ago, so that it has its disk: stop it and ask \
             again after {ALIVE_WITHIN:?}, or send it away with \"orderly nodes decommission \
             {name}\"",
            name = node.name
        )));
    }
    set_state(control, node.id, NodeState::Replaced).await
}

/// The node of a name or number.
async fn find(control: &ControlClient, asked: &str) -> Result<Node, Refusal> {
    let nodes = read::nodes(control.read().await?)?;
    let number = asked.parse().ok().map(NodeId);
    let there = || nodes.iter().filter(|node| node.state != NodeState::Removed);
    let named: Vec<&Node> = there().filter(|node| node.name.as_str() == asked).collect();
    match named[..] {
        [node] => Ok(node.clone()),
        [] => {
            let found = nodes.iter().find(|node| Some(node.id) == number);
            found.cloned().ok_or_else(|| Refusal::NoSuchNode {
                asked: asked.to_owned(),
                known: joined(there().map(|node| node.name.to_string())),
            })
        }
        _ => Err(Refusal::Ambiguous {
            asked: asked.to_owned(),
            count: named.len(),
            numbers: joined(named.iter().map(|node| node.id.to_string())),
        }),
    }
}

async fn set_state(
    control: &ControlClient,
    node: NodeId,
    state: NodeState,
) -> Result<admin::Node, Refusal> {
    if let Reply::Rejected(why) = propose_state(control, SetNodeState { node, state }).await? {
        return Err(why.into());
    }
    let survey = control.survey().await?;
    let described = read::describe_nodes(control.read().await?)?;
    let described = described.iter().find(|it| it.node.id == node);
    Ok(message(described.expect("rows of nodes stay"), &survey))
}

/// Sets a state, and sets it again where nobody knows whether it was set: a node that is drained
/// may be the one that has to say so.
async fn propose_state(
    control: &ControlClient,
    set: SetNodeState,
) -> Result<Reply, replica::Unavailable> {
    let give_up = Instant::now() + SET_STATE_MAX;
    loop {
        match control.propose(Command::SetNodeState(set)).await {
            Err(why) if why.unknown && Instant::now() < give_up => sleep(SET_AGAIN_AFTER).await,
            answer => return answer,
        }
    }
}

/// Refuses a departure that would never end, or that leaves groups with less than they have.
async fn check_departure(control: &ControlClient, node: &Node, force: bool) -> Result<(), Refusal> {
    let view = control.read().await?;
    let consequences = departure(view, &BTreeSet::new(), node.id)?;
    let (region, zone, name) = (&node.region, &node.zone, &node.name);
    let (weaker, stuck): (Vec<_>, Vec<_>) = consequences.iter().partition(|it| it.then.is_some());
    if !stuck.is_empty() {
        return Err(Refusal::Harm(format!(
            "node \"{name}\" could never leave: no other node of region \"{region}\" can take {}; \
             start another one there first",
            groups(&stuck)
        )));
    }
    if !weaker.is_empty() && !force {
        let then = weaker.iter().filter_map(|it| it.then).min();
        return Err(Refusal::Harm(format!(
            "without node \"{name}\", {} would survive less: the loss of {} at most; start a node \
             in region \"{region}\", zone \"{zone}\", first, or add --force",
            groups(&weaker),
            then.map(loss).expect("there is one"),
        )));
    }
    Ok(())
}

/// The loss of what is survived, in words.
fn loss(survives: read::Survives) -> &'static str {
    match survives {
        read::Survives::Nothing => "no node",
        read::Survives::Node => "one node",
        read::Survives::Zone => "one zone",
        read::Survives::Region => "one region",
    }
}

fn groups(consequences: &[&Consequence]) -> String {
    joined(consequences.iter().map(|it| it.group.to_string()))
}

fn refused(node: &Node, next: &'static str) -> Refusal {
    Refusal::State {
        node: node.name.to_string(),
        state: node.state,
        next,
    }
}

fn message(described: &NodeDescription, survey: &Survey) -> admin::Node {
    let NodeDescription {
        node,
        votes,
        learns,
    } = described;
    let led = survey.groups.iter();
    let leads = led.clone().filter(|(_, led)| led.leader == node.id);
    let still_votes = led.filter(|(_, led)| led.voters.contains(&node.id));
    let silent = survey.silent.get(&node.id).copied().unwrap_or_default();
    admin::Node {
        id: node.id.0,
        name: node.name.to_string(),
        region: node.region.to_string(),
        zone: node.zone.to_string(),
        state: state(node.state).into(),
        peer_address: node.peer_address.clone(),
        client_address: node.client_address.clone(),
        votes: names(votes.iter().copied()),
        learns: names(learns.iter().copied()),
        leads: names(leads.map(|(group, _)| *group)),
        still_votes: names(still_votes.map(|(group, _)| *group)),
        silent_ms: u64::try_from(silent.as_millis()).unwrap_or(u64::MAX),
    }
}

fn state(state: NodeState) -> admin::node::State {
    match state {
        NodeState::Active => admin::node::State::Active,
        NodeState::Draining => admin::node::State::Draining,
        NodeState::Decommissioning => admin::node::State::Decommissioning,
        NodeState::Removed => admin::node::State::Removed,
        NodeState::Replaced => admin::node::State::Replaced,
    }
}

fn names(groups: impl Iterator<Item = GroupId>) -> Vec<String> {
    groups.map(|group| group.to_string()).collect()
}

fn joined(words: impl Iterator<Item = String>) -> String {
    words.collect::<Vec<_>>().join(", ")
}

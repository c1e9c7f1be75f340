//! Watches a node until it has come to where it was sent.

use std::time::Duration;

use proto::admin::admin_client::AdminClient;
use proto::admin::node::State;
use proto::admin::{ListNodesRequest, Node};
use tokio::time::sleep;
use tonic::Code;
use tonic::transport::Channel;

use crate::cli::Failure;
use crate::cli::output::Progress;

/// How often a node is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(250);
/// So many looks in a row must say that a node leads nothing: what the cluster knows of it is a
/// second old.
const LOOKS_MIN: u32 = 8;

/// Waits until the node leads nothing that another could lead.
pub(super) async fn until_drained(
    client: &mut AdminClient<Channel>,
    mut node: Node,
) -> Result<Node, Failure> {
    let mut progress = Progress::default();
    let mut idle = 0;
    while idle < LOOKS_MIN {
        let nodes;
        (node, nodes) = look(client, &node).await?;
        if node.state() != State::Draining {
            return Err(changed(&node, "drain"));
        }
        let left = could_hand_over(&node, &nodes);
        progress.say(&format!(
            "{}: {left} of {} leaderships are to be handed over",
            node.name,
            node.leads.len()
        ));
        idle = if left == 0 { idle + 1 } else { 0 };
        sleep(LOOK_EVERY).await;
    }
    Ok(node)
}

/// Waits until the node is out.
pub(super) async fn until_removed(
    client: &mut AdminClient<Channel>,
    mut node: Node,
) -> Result<Node, Failure> {
    let mut progress = Progress::default();
    let all = node.still_votes.len();
    loop {
        (node, _) = look(client, &node).await?;
        match node.state() {
            State::Removed => return Ok(node),
            State::Decommissioning | State::Replaced => {}
            _ => return Err(changed(&node, "departure")),
        }
        let left = node.still_votes.len();
        progress.say(&format!(
            "{}: {} of {} groups have moved",
            node.name,
            all.saturating_sub(left),
            all.max(left)
        ));
        sleep(LOOK_EVERY).await;
    }
}

/// How many of the groups that a node leads have another voter.
fn could_hand_over(node: &Node, nodes: &[Node]) -> usize {
    let others = || nodes.iter().filter(|other| other.id != node.id);
    let votes_elsewhere = |group: &&String| others().any(|it| it.still_votes.contains(group));
    node.leads.iter().filter(votes_elsewhere).count()
}

/// The node as it is now, and all nodes. Who is asked may have gone, and another may lead.
async fn look(
    client: &mut AdminClient<Channel>,
    node: &Node,
) -> Result<(Node, Vec<Node>), Failure> {
    loop {
        match client.list_nodes(ListNodesRequest {}).await {
            Ok(listed) => {
                let nodes = listed.into_inner().nodes;
                let found = nodes.iter().find(|it| it.id == node.id).cloned();
                return Ok((found.expect("nodes are listed for ever"), nodes));
            }
            Err(status) if status.code() == Code::Unavailable && !is_gone(&status) => {
                sleep(LOOK_EVERY).await;
            }
            Err(status) if is_gone(&status) => {
                return Err(Failure::Check(format!(
                    "the node that was asked has gone: look with \"orderly nodes describe {}\" at \
                     the --endpoint of another",
                    node.name
                )));
            }
            Err(status) => return Err(status.into()),
        }
    }
}

/// Whether no node listens any more where one did.
fn is_gone(status: &tonic::Status) -> bool {
    std::error::Error::source(status).is_some()
}

fn changed(node: &Node, what: &str) -> Failure {
    Failure::Check(format!(
        "somebody took the {what} of node \"{}\" back",
        node.name
    ))
}

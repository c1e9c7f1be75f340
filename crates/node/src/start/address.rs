//! A node that is reached elsewhere than the catalogue says tells the cluster.

use std::time::Duration;

use engine::control::read;
use engine::control::{Command, Node, Reply, UpdateNode};
use model::NodeId;
use replica::ControlClient;
use tokio::time::sleep;
use tracing::{info, warn};

use super::Member;

/// The pause before it is told again.
const TELL_AGAIN_AFTER: Duration = Duration::from_secs(1);

/// Compares what the catalogue on this node says of it with what it was told at its start, and
/// changes the catalogue until it says the same. Where it does, nobody is asked.
pub(super) async fn tell(control: ControlClient, number: NodeId, member: Member) {
    let mut applied = control.applied();
    loop {
        applied.borrow_and_update();
        match read::node(control.view(), number) {
            Ok(Some(node)) if is_reached(&node, &member) => return,
            Ok(Some(node)) => match control.propose(update(&node, &member)).await {
                Ok(Reply::Rejected(why)) => {
                    return warn!(%why, "the cluster does not take this node's addresses");
                }
                Ok(_) => {
                    let (clients, peers) = (&member.client_address, &member.peer_address);
                    return info!(%clients, %peers, "the cluster knows where this node is now");
                }
                Err(_) => sleep(TELL_AGAIN_AFTER).await,
            },
            // It has just joined; what can't be read stops the node elsewhere.
            Ok(None) | Err(_) => {
                if applied.changed().await.is_err() {
                    return;
                }
            }
        }
    }
}

fn is_reached(node: &Node, member: &Member) -> bool {
    node.client_address == member.client_address && node.peer_address == member.peer_address
}

fn update(node: &Node, member: &Member) -> Command {
    Command::UpdateNode(UpdateNode {
        node: node.id,
        peer_address: member.peer_address.clone(),
        client_address: member.client_address.clone(),
        zone: node.zone.clone(),
    })
}

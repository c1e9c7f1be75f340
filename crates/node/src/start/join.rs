//! Joining: a node with an empty folder becomes a member of a cluster that exists.

use std::time::Duration;

use replica::control::{JoinError, join};
use replica::peer::Tls;
use store::{Identity, Start, Store};
use tokio::time::{Instant, sleep};
use tracing::{info, warn};

use super::found::new_node;
use super::{Environment, Member, Settings, StartError, store_settings};

/// The wait before all nodes are asked again.
const ASK_AGAIN_AFTER: Duration = Duration::from_millis(200);
/// How often the log says that nobody answers.
const COMPLAIN_EVERY: Duration = Duration::from_secs(10);

/// Asks the nodes of `member.join` until one lets this node in, and makes the folder this node's.
///
/// # Errors
/// [`StartError`] when the cluster refuses, or the folder can't be used.
pub(super) async fn join_cluster(
    settings: &Settings,
    member: &Member,
    environment: &Environment,
    tls: Option<&Tls>,
) -> Result<Store, StartError> {
    // The same for all attempts: asked twice, the cluster gives one id.
    let node = new_node(settings, environment.chance.bytes()?);
    let mut complained = None;
    let joined = loop {
        match join(&environment.network, &member.join, &node, tls).await {
            Ok(joined) => break joined,
            Err(JoinError::Refused(why)) => return Err(StartError::NotLetIn { why }),
            Err(JoinError::NoAnswer(why)) => {
                if complained.is_none_or(|at: Instant| at.elapsed() > COMPLAIN_EVERY) {
                    complained = Some(Instant::now());
                    warn!(nodes = ?member.join, why, "no node of the cluster answers: asking on");
                }
                sleep(ASK_AGAIN_AFTER).await;
            }
        }
    };
    info!(cluster = joined.cluster, node = %joined.node, "joined the cluster");
    let identity = Identity {
        cluster: joined.cluster,
        node: joined.node,
        called: Some(member.called()),
    };
    let new = store_settings(settings, Start::New(identity));
    Ok(environment.disk.open(new)?)
}

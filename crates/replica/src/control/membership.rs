//! How a node becomes a member of a cluster: it asks any node, which asks the control group.

use std::error::Error as _;
use std::time::Duration;

use engine::control::{Command, NewNode, Reply, read};
use model::{FormatLevel, InvalidPlaceName, NodeId, NodeName, RegionName, ZoneName};
use proto::cluster::membership_client::MembershipClient;
use proto::cluster::membership_server::{Membership, MembershipServer};
use proto::cluster::{JoinReply, JoinRequest};
use thiserror::Error;
use tonic::{Code, Request, Response, Status};

use super::client::ControlClient;
use crate::network::Network;
use crate::peer::{Tls, channel_of_stranger};

/// The protocol between nodes that this program speaks.
const PROTOCOL: u32 = 1;
/// A node that does not answer for so long is not asked any more; another is.
const ANSWER_MAX: Duration = Duration::from_secs(20);

/// A node was let in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Joined {
    /// The id of the cluster.
    pub cluster: String,
    /// The node's id from now on.
    pub node: NodeId,
}

/// A node was not let in.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum JoinError {
    /// *Refused*: the cluster does not want it.
    #[error("{0}")]
    Refused(String),
    /// *Retry*: nobody answered for the cluster.
    #[error("{0}")]
    NoAnswer(String),
}

/// Asks each of these nodes, as `host:port`, to let `node` in, until one answers. Where the cluster
/// secures its connections, the node's certificates open the door.
///
/// # Errors
/// [`JoinError`]
pub async fn join(
    network: &Network,
    at: &[String],
    node: &NewNode,
    tls: Option<&Tls>,
) -> Result<Joined, JoinError> {
    let mut silent = Vec::new();
    // A node that is given the same list as all others is in it.
    for address in at.iter().filter(|address| **address != node.peer_address) {
        match ask(network, address, node, tls).await {
            Err(JoinError::NoAnswer(why)) => silent.push(format!("{address}: {why}")),
            answered => return answered,
        }
    }
    Err(JoinError::NoAnswer(match silent.is_empty() {
        true => "there is nobody to ask".to_owned(),
        false => silent.join("; "),
    }))
}

async fn ask(
    network: &Network,
    address: &str,
    node: &NewNode,
    tls: Option<&Tls>,
) -> Result<Joined, JoinError> {
    let channel = channel_of_stranger(network, address, tls.cloned());
    let mut client = MembershipClient::new(channel);
    let mut request = Request::new(JoinRequest {
        name: node.name.to_string(),
        region: node.region.to_string(),
        zone: node.zone.to_string(),
        peer_address: node.peer_address.clone(),
        client_address: node.client_address.clone(),
        token: node.join.to_vec().into(),
        protocol: PROTOCOL,
        format_level: FormatLevel::KNOWN.0,
    });
    request.set_timeout(ANSWER_MAX);
    match client.join(request).await {
        Ok(reply) => {
            let JoinReply { cluster, node } = reply.into_inner();
            let node = NodeId(node);
            Ok(Joined { cluster, node })
        }
        Err(status) => Err(match status.code() {
            Code::FailedPrecondition | Code::InvalidArgument => {
                JoinError::Refused(status.message().to_owned())
            }
            _ => JoinError::NoAnswer(reason(&status)),
        }),
    }
}

/// Why there is no answer: what the innermost error says, where there is one.
fn reason(status: &Status) -> String {
    let mut innermost: Option<&dyn std::error::Error> = None;
    let mut next = status.source();
    while let Some(error) = next {
        innermost = Some(error);
        next = error.source();
    }
    innermost.map_or_else(|| status.message().to_owned(), ToString::to_string)
}

/// Lets nodes in.
struct Service {
    control: ControlClient,
    cluster: String,
}

impl ControlClient {
    /// The service that nodes call which belong to no cluster yet.
    pub(crate) fn membership(&self, cluster: &str) -> MembershipServer<impl Membership> {
        MembershipServer::new(Service {
            control: self.clone(),
            cluster: cluster.to_owned(),
        })
    }
}

#[tonic::async_trait]
impl Membership for Service {
    async fn join(&self, request: Request<JoinRequest>) -> Result<Response<JoinReply>, Status> {
        let request = request.into_inner();
        let present = read::format_level(self.control.view());
        let present = present.map_err(|fault| Status::unavailable(fault.to_string()))?;
        check_format(FormatLevel(request.format_level), present)?;
        let node = new_node(request)?;
        let joined = self.control.propose(Command::Join(node)).await;
        match joined.map_err(|why| Status::unavailable(why.to_string()))? {
            Reply::Joined(node) => Ok(Response::new(JoinReply {
                cluster: self.cluster.clone(),
                node: node.0,
            })),
            Reply::Rejected(why) => Err(Status::failed_precondition(why.to_string())),
            other => unreachable!("a join was answered with {other:?}"),
        }
    }
}

/// A node must be able to read what the others write. One that does not say knows the first level.
fn check_format(knows: FormatLevel, present: FormatLevel) -> Result<(), Status> {
    match knows.max(FormatLevel::FIRST) >= present {
        true => Ok(()),
        false => Err(Status::failed_precondition(format!(
            "the node knows format level {knows}, and the cluster is at {present}: install a newer \
             version"
        ))),
    }
}

fn new_node(request: JoinRequest) -> Result<NewNode, Status> {
    if request.protocol < PROTOCOL {
        return Err(Status::failed_precondition(format!(
            "the node speaks protocol {}, the cluster {PROTOCOL}: install a newer version",
            request.protocol
        )));
    }
    let token = request.token[..].try_into();
    let invalid = |why: InvalidPlaceName| Status::invalid_argument(why.to_string());
    Ok(NewNode {
        name: NodeName::parse(&request.name).map_err(invalid)?,
        region: RegionName::parse(&request.region).map_err(invalid)?,
        zone: ZoneName::parse(&request.zone).map_err(invalid)?,
        peer_address: request.peer_address,
        client_address: request.client_address,
        join: token.map_err(|_| Status::invalid_argument("token must have 16 bytes"))?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_that_knows_less_than_the_cluster_is_not_let_in() {
        let present = FormatLevel(3);
        let refused = check_format(FormatLevel(2), present).expect_err("it is too old");
        assert_eq!(refused.code(), Code::FailedPrecondition);
        assert!(refused.message().contains("at 3"), "{refused}");
        for knows in [3, 4] {
            assert!(check_format(FormatLevel(knows), present).is_ok());
        }
    }
}

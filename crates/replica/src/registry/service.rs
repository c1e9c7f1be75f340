//! How other nodes ask the registry groups that this node leads.

use engine::command::{Command, Proposal};
use model::{GroupId, RegistryNumber};
use proto::cluster::registry_server::{Registry, RegistryServer};
use proto::cluster::{RegistryReply, RegistryRequest};
use tonic::{Request, Response, Status};

use super::propose;
use crate::clock::Clock;
use crate::groups::Groups;
use crate::raft::Core;

/// Answers what shards led by other nodes ask.
pub(crate) struct RegistryService {
    groups: Groups,
    clock: Clock,
}

impl RegistryService {
    /// The service, to be served to nodes.
    pub(crate) fn server(groups: Groups, clock: Clock) -> RegistryServer<Self> {
        RegistryServer::new(RegistryService { groups, clock })
    }
}

#[tonic::async_trait]
impl Registry for RegistryService {
    async fn ask(
        &self,
        request: Request<RegistryRequest>,
    ) -> Result<Response<RegistryReply>, Status> {
        let request = request.into_inner();
        let number = u16::try_from(request.registry);
        let number = number.map_err(|_| Status::invalid_argument("no group has this number"))?;
        let group = GroupId::Registry(RegistryNumber(number));
        let leads = |core: &Core| core.leader() == Some(self.groups.node());
        let core = self.groups.get(group).filter(leads);
        let not_leading = || Status::failed_precondition("this node does not lead the group");
        let core = core.ok_or_else(not_leading)?;
        let entry = Proposal::decode(&request.entry).ok().filter(is_question);
        let entry = entry.ok_or_else(|| Status::invalid_argument("this is no question"))?;
        let at = self.clock.wall();
        let reply = propose(&core, Proposal { at, ..entry }).await;
        let reply = reply.ok_or_else(|| Status::unavailable("the group has lost its leader"))?;
        let reply = reply.encode().into();
        Ok(Response::new(RegistryReply { reply }))
    }
}

/// Whether an entry has one command, for a registry group.
fn is_question(entry: &Proposal) -> bool {
    matches!(entry.commands[..], [Command::Registry(_)])
}

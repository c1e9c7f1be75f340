//! How other nodes ask the registry groups that this node leads.

use engine::command::{Command, Proposal};
use model::{GroupId, RegistryNumber};
use proto::cluster::registry_server::{Registry, RegistryServer};
use proto::cluster::{RegistryLookReply, RegistryLookRequest, RegistryReply, RegistryRequest};
use tonic::{Request, Response, Status};

use super::{look, propose};
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
        let core = self.led(request.registry)?;
        let entry = Proposal::decode(&request.entry).ok().filter(is_question);
        let entry = entry.ok_or_else(|| Status::invalid_argument("this is no question"))?;
        let at = self.clock.wall();
        let reply = propose(&core, Proposal { at, ..entry }).await;
        let reply = reply.ok_or_else(|| Status::unavailable("the group has lost its leader"))?;
        let reply = reply.encode().into();
        Ok(Response::new(RegistryReply { reply }))
    }

    async fn look(
        &self,
        request: Request<RegistryLookRequest>,
    ) -> Result<Response<RegistryLookReply>, Status> {
        let request = request.into_inner();
        let core = self.led(request.registry)?;
        let asked = look::asked(&request);
        let (from, count) =
            asked.ok_or_else(|| Status::invalid_argument("a strand has sixteen bytes"))?;
        let reply = look::answer(&core, from, count).await;
        let reply = reply.ok_or_else(|| Status::unavailable("the group has lost its leader"))?;
        Ok(Response::new(reply))
    }
}

impl RegistryService {
    /// The group of a number, if this node leads it.
    fn led(&self, registry: u32) -> Result<Core, Status> {
        let number = u16::try_from(registry);
        let number = number.map_err(|_| Status::invalid_argument("no group has this number"))?;
        let group = GroupId::Registry(RegistryNumber(number));
        let leads = |core: &Core| core.leader() == Some(self.groups.node());
        let core = self.groups.get(group).filter(leads);
        core.ok_or_else(|| Status::failed_precondition("this node does not lead the group"))
    }
}

/// Whether an entry has one command, for a registry group.
fn is_question(entry: &Proposal) -> bool {
    matches!(entry.commands[..], [Command::Registry(_)])
}

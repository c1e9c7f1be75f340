//! How other nodes reach the replicas on this one.

use std::pin::Pin;

use futures::{Stream, StreamExt, stream};
use model::GroupId;
use proto::cluster;
use proto::cluster::raft_server::{Raft, RaftServer};
use tonic::{Request, Response, Status, Streaming};
use tracing::debug;

use super::Groups;
use crate::raft::{Core, MESSAGE_BYTES_MAX, Unanswered};

/// Answers what replicas of other nodes ask of those on this one.
pub(crate) struct RaftService(Groups);

impl RaftService {
    /// The service, to be served to nodes.
    pub(crate) fn server(groups: Groups) -> RaftServer<Self> {
        RaftServer::new(RaftService(groups)).max_decoding_message_size(MESSAGE_BYTES_MAX)
    }

    /// The replica that is meant, opened where it is not yet.
    async fn core(&self, number: u32) -> Result<Core, Status> {
        let group = GroupId::from_number(number);
        let group = group.ok_or_else(|| Status::invalid_argument("no group has this number"))?;
        if let Some(core) = self.0.get(group) {
            return Ok(core);
        }
        let opened = self.0.open(group).await;
        opened.map_err(|stopped| status(Unanswered::Stopped(stopped)))
    }
}

#[tonic::async_trait]
impl Raft for RaftService {
    type AppendStream = Pin<Box<dyn Stream<Item = Result<cluster::AppendReply, Status>> + Send>>;

    async fn append(
        &self,
        request: Request<Streaming<cluster::AppendRequest>>,
    ) -> Result<Response<Self::AppendStream>, Status> {
        let mut requests = request.into_inner();
        let Some(first) = requests.message().await? else {
            return Ok(Response::new(Box::pin(stream::empty())));
        };
        let core = self.core(first.group).await?;
        let replies = core.append(whole(first, requests));
        Ok(Response::new(Box::pin(replies.map(answered))))
    }

    async fn heartbeat(
        &self,
        request: Request<cluster::AppendRequest>,
    ) -> Result<Response<cluster::AppendReply>, Status> {
        let request = request.into_inner();
        let core = self.core(request.group).await?;
        answered(core.append_one(request).await).map(Response::new)
    }

    async fn vote(
        &self,
        request: Request<cluster::VoteRequest>,
    ) -> Result<Response<cluster::VoteReply>, Status> {
        let request = request.into_inner();
        let core = self.core(request.group).await?;
        answered(core.vote(request).await).map(Response::new)
    }

    async fn pre_vote(
        &self,
        request: Request<cluster::VoteRequest>,
    ) -> Result<Response<cluster::VoteReply>, Status> {
        let request = request.into_inner();
        let core = self.core(request.group).await?;
        answered(core.pre_vote(request).await).map(Response::new)
    }

    async fn transfer_leader(
        &self,
        request: Request<cluster::TransferLeaderRequest>,
    ) -> Result<Response<cluster::TransferLeaderReply>, Status> {
        let request = request.into_inner();
        let core = self.core(request.group).await?;
        answered(core.take_over(request).await).map(Response::new)
    }

    async fn read_index(
        &self,
        request: Request<cluster::ReadIndexRequest>,
    ) -> Result<Response<cluster::ReadIndexReply>, Status> {
        let core = self.core(request.into_inner().group).await?;
        answered(core.read_index().await).map(Response::new)
    }

    async fn install_checkpoint(
        &self,
        request: Request<Streaming<cluster::CheckpointChunk>>,
    ) -> Result<Response<cluster::InstallReply>, Status> {
        let mut chunks = request.into_inner();
        let first = chunks.message().await?.unwrap_or_default();
        let group = first.head.map_or(0, |head| head.group);
        let core = self.core(group).await?;
        let chunks = Box::pin(whole(first, chunks));
        answered(core.install(chunks).await).map(Response::new)
    }
}

/// All requests of a stream, until it ends or breaks.
fn whole<T: Send + 'static>(
    first: T,
    requests: Streaming<T>,
) -> impl Stream<Item = T> + Send + 'static {
    let rest = requests.map(|request| match request {
        Ok(request) => Some(request),
        Err(broken) => {
            debug!(%broken, "a leader's stream broke");
            None
        }
    });
    let rest = rest.take_while(|request| std::future::ready(request.is_some()));
    stream::once(std::future::ready(first)).chain(rest.filter_map(std::future::ready))
}

fn answered<T>(answer: Result<T, Unanswered>) -> Result<T, Status> {
    answer.map_err(status)
}

fn status(why: Unanswered) -> Status {
    match why {
        Unanswered::Malformed => Status::invalid_argument("this is not what replicas ask"),
        Unanswered::NotLeading => Status::failed_precondition("this node does not lead the group"),
        Unanswered::NotInstalled(why) => Status::unavailable(why),
        Unanswered::Stopped(stopped) => Status::unavailable(stopped.to_string()),
    }
}

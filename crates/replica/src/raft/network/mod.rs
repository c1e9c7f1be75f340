//! The way to other nodes: what Raft asks of one replica, as calls.
//!
//! - [`wire`]: Raft's words as they travel.
//! - [`serve`]: the asked side.
//! - [`room`]: which of the others have room on their disks.
//!
//! Everything that goes wrong on the way is answered with openraft's `Unreachable`: it backs off
//! on that error, and on no other.

pub(super) mod room;
mod serve;
pub(super) mod wire;

pub(crate) use serve::Unanswered;

use std::future::Future;
use std::time::Duration;

use futures::{Stream, StreamExt, stream};
use model::{GroupId, NodeId};
use openraft::alias::{SnapshotOf, VoteOf};
use openraft::base::{BoxFuture, BoxStream};
use openraft::errors::{RPCError, ReplicationClosed, StreamingError};
use openraft::impls::EmptyNode;
use openraft::network::{Backoff, RPCOption, RaftNetworkFactory, RaftNetworkV2};
use openraft::raft::{
    AppendEntriesRequest, AppendEntriesResponse, SnapshotResponse, StreamAppendResult,
    TransferLeaderRequest, TransferLeaderResponse, VoteRequest, VoteResponse,
};
use proto::cluster;
use proto::cluster::raft_client::RaftClient;
use store::{Position, Store};
use tonic::Status;

use super::Types;
use super::checkpoint::{Checkpoint, Exports, Holds};
use crate::peer::{PeerChannel, Peers, Use};
use room::Room;

/// One message of entries. It holds what is read from the log at once, and one entry beyond.
pub(crate) const MESSAGE_BYTES_MAX: usize = 64 * 1024 * 1024;

/// How long replication to a node waits after a failure: from the first, doubling, to the last.
const BACKOFF_MIN: Duration = Duration::from_millis(20);
const BACKOFF_MAX: Duration = Duration::from_millis(200);

/// The ways of one group's replica to all others.
#[derive(Clone)]
pub(super) struct Network {
    pub(super) group: GroupId,
    pub(super) peers: Peers,
    /// For checkpoints: what is sent, what must stay for it, and how much is sent at once.
    pub(super) store: Store,
    pub(super) holds: Holds,
    pub(super) exports: Exports,
    pub(super) room: Room,
}

/// The way to one replica.
pub(super) struct Link {
    pub(super) network: Network,
    pub(super) target: NodeId,
    purpose: Purpose,
}

/// What a link carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Purpose {
    Entries,
    /// Signs of life only.
    Heartbeats,
    /// Checkpoints only, on a connection of their own.
    Checkpoints,
}

type Failed = RPCError<Types>;
type Appended = Result<StreamAppendResult<Types>, Failed>;

impl Network {
    /// How far this node's state must come so that it is not older than anything that the
    /// leader answered before. `None` when that node can't tell: it does not lead.
    pub(super) async fn read_index(&self, leader: NodeId) -> Option<Position> {
        let group = self.group.to_number();
        let mut client = self.client(leader, Use::Raft).ok()?;
        let request = cluster::ReadIndexRequest { group };
        let reply = client.read_index(request).await.ok()?;
        reply.into_inner().at.map(wire::position)
    }

    fn link(&self, target: NodeId, purpose: Purpose) -> Link {
        Link {
            network: self.clone(),
            target,
            purpose,
        }
    }

    fn client(&self, target: NodeId, channel: Use) -> Result<RaftClient<PeerChannel>, Failed> {
        let channel = self.peers.channel(target, channel);
        let channel = channel.map_err(|unknown| unreachable(&unknown))?;
        Ok(RaftClient::new(channel).max_encoding_message_size(MESSAGE_BYTES_MAX))
    }
}

impl RaftNetworkFactory<Types> for Network {
    type Network = Link;

    async fn new_client(&mut self, target: NodeId, _: &EmptyNode) -> Link {
        self.link(target, Purpose::Entries)
    }

    async fn new_heartbeat_client(&mut self, target: NodeId, _: &EmptyNode) -> Link {
        self.link(target, Purpose::Heartbeats)
    }

    async fn new_snapshot_client(&mut self, target: NodeId, _: &EmptyNode) -> Link {
        self.link(target, Purpose::Checkpoints)
    }
}

impl Link {
    pub(super) fn client(&self) -> Result<RaftClient<PeerChannel>, Failed> {
        let channel = match self.purpose {
            Purpose::Entries | Purpose::Heartbeats => Use::Raft,
            Purpose::Checkpoints => Use::Checkpoints,
        };
        self.network.client(self.target, channel)
    }

    fn wire(&self, request: AppendEntriesRequest<Types>) -> cluster::AppendRequest {
        wire::append_request(self.network.group, request)
    }

    /// One append by itself.
    async fn append(&self, request: AppendEntriesRequest<Types>) -> Appended {
        let request = self.wire(request);
        let reply = self.client()?.heartbeat(request).await;
        let reply = reply.map(tonic::Response::into_inner);
        appended(&self.network.room, self.target, reply)
    }
}

impl RaftNetworkV2<Types> for Link {
    type SnapshotData = Checkpoint;

    async fn append_entries(
        &mut self,
        request: AppendEntriesRequest<Types>,
        _option: RPCOption,
    ) -> Result<AppendEntriesResponse<Types>, Failed> {
        Ok(self.append(request).await?.into())
    }

    // openraft's own default waits for each answer before the next request.
    fn stream_append<'s, S>(
        &'s mut self,
        mut requests: S,
        _option: RPCOption,
    ) -> BoxFuture<'s, Result<BoxStream<'s, Appended>, Failed>>
    where
        S: Stream<Item = AppendEntriesRequest<Types>> + Send + Unpin + 'static,
    {
        Box::pin(async move {
            // openraft sleeps its back-off inside of this stream. To connect first would be to
            // dial a dead node as fast as it refuses.
            let Some(first) = requests.next().await else {
                return Ok(stream::empty().boxed());
            };
            if self.purpose == Purpose::Heartbeats {
                let appended = self.append(first).await;
                return Ok(stream::once(std::future::ready(appended)).boxed());
            }
            let group = self.network.group;
            let requests = stream::once(std::future::ready(first)).chain(requests);
            let requests = requests.map(move |request| wire::append_request(group, request));
            let replies = self.client()?.append(requests).await;
            let replies = replies.map_err(|status| unreachable(&status))?;
            let (room, target) = (self.network.room.clone(), self.target);
            let replies = replies.into_inner();
            Ok(replies
                .map(move |reply| appended(&room, target, reply))
                .boxed())
        })
    }

    async fn vote(
        &mut self,
        request: VoteRequest<Types>,
        _option: RPCOption,
    ) -> Result<VoteResponse<Types>, Failed> {
        let request = wire::vote_request(self.network.group, request);
        let reply = self.client()?.vote(request).await;
        voted(reply)
    }

    // openraft's own default grants: a node cut off from all others would then campaign for ever.
    async fn pre_vote(
        &mut self,
        request: VoteRequest<Types>,
        _option: RPCOption,
    ) -> Result<VoteResponse<Types>, Failed> {
        let request = wire::vote_request(self.network.group, request);
        let reply = self.client()?.pre_vote(request).await;
        voted(reply)
    }

    async fn full_snapshot(
        &mut self,
        leader: VoteOf<Types>,
        snapshot: SnapshotOf<Types, Checkpoint>,
        cancel: impl Future<Output = ReplicationClosed> + Send + 'static,
        option: RPCOption,
    ) -> Result<SnapshotResponse<Types>, StreamingError<Types>> {
        let at = snapshot.meta.last_log_id;
        let at = at.ok_or_else(|| unreachable(&"nothing was applied yet"))?;
        self.send_checkpoint(leader, &at, cancel, option).await
    }

    async fn transfer_leader(
        &mut self,
        request: TransferLeaderRequest<Types>,
        _option: RPCOption,
    ) -> Result<TransferLeaderResponse<Types>, Failed> {
        let asked = wire::transfer_request(self.network.group, &request);
        let reply = self.client()?.transfer_leader(asked).await;
        let reply = reply.map_err(|status| unreachable(&status))?.into_inner();
        Ok(wire::to_transfer_response(&request, reply))
    }

    fn backoff(&self) -> Option<Backoff> {
        Some(Backoff::new(waits()))
    }
}

/// The waits between attempts to reach a node, without end: it may be away for days.
fn waits() -> impl Iterator<Item = Duration> {
    let next = |wait: &Duration| Some((*wait * 2).min(BACKOFF_MAX));
    std::iter::successors(Some(BACKOFF_MIN), next)
}

fn appended(room: &Room, target: NodeId, reply: Result<cluster::AppendReply, Status>) -> Appended {
    let reply = reply.map_err(|status| unreachable(&status))?;
    room.heard(target, reply.full);
    wire::to_appended(reply).ok_or_else(|| unreachable(&"the answer to an append says nothing"))
}

fn voted(
    reply: Result<tonic::Response<cluster::VoteReply>, Status>,
) -> Result<VoteResponse<Types>, Failed> {
    let reply = reply.map_err(|status| unreachable(&status))?.into_inner();
    wire::to_vote_response(reply).ok_or_else(|| unreachable(&"the answer to a candidate is empty"))
}

pub(super) fn unreachable(why: &dyn ToString) -> Failed {
    openraft::errors::Unreachable::from_string(why.to_string()).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_may_be_away_for_days() {
        let a_day = 24 * 60 * 60 * 1_000 / BACKOFF_MAX.as_millis() as usize;
        assert_eq!(waits().next(), Some(BACKOFF_MIN));
        assert_eq!(waits().nth(7 * a_day), Some(BACKOFF_MAX));
    }
}

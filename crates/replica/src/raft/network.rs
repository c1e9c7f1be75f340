//! The way to other nodes.
//!
//! A cluster of one node has no way and needs none: [`Unreachable`] says so to whoever asks.

use std::future::Future;

use model::NodeId;
use openraft::alias::{SnapshotOf, VoteOf};
use openraft::errors::{RPCError, ReplicationClosed, StreamingError};
use openraft::impls::EmptyNode;
use openraft::network::{RPCOption, RaftNetworkFactory, RaftNetworkV2};
use openraft::raft::{
    AppendEntriesRequest, AppendEntriesResponse, SnapshotResponse, TransferLeaderRequest,
    TransferLeaderResponse, VoteRequest, VoteResponse,
};

use super::Types;
use super::checkpoint::Checkpoint;

/// No other node can be reached.
pub(super) struct Unreachable;

impl Unreachable {
    /// openraft backs off on this error, and on no other.
    fn error() -> openraft::errors::Unreachable<Types> {
        openraft::errors::Unreachable::from_string("this node has no way to other nodes")
    }
}

impl RaftNetworkFactory<Types> for Unreachable {
    type Network = Unreachable;

    async fn new_client(&mut self, _target: NodeId, _node: &EmptyNode) -> Unreachable {
        Unreachable
    }
}

impl RaftNetworkV2<Types> for Unreachable {
    type SnapshotData = Checkpoint;

    async fn append_entries(
        &mut self,
        _request: AppendEntriesRequest<Types>,
        _option: RPCOption,
    ) -> Result<AppendEntriesResponse<Types>, RPCError<Types>> {
        Err(Self::error().into())
    }

    async fn vote(
        &mut self,
        _request: VoteRequest<Types>,
        _option: RPCOption,
    ) -> Result<VoteResponse<Types>, RPCError<Types>> {
        Err(Self::error().into())
    }

    // openraft's own default grants: a node cut off from all others would then campaign for ever.
    async fn pre_vote(
        &mut self,
        _request: VoteRequest<Types>,
        _option: RPCOption,
    ) -> Result<VoteResponse<Types>, RPCError<Types>> {
        Err(Self::error().into())
    }

    async fn full_snapshot(
        &mut self,
        _vote: VoteOf<Types>,
        _snapshot: SnapshotOf<Types, Checkpoint>,
        _cancel: impl Future<Output = ReplicationClosed> + Send + 'static,
        _option: RPCOption,
    ) -> Result<SnapshotResponse<Types>, StreamingError<Types>> {
        Err(Self::error().into())
    }

    async fn transfer_leader(
        &mut self,
        _request: TransferLeaderRequest<Types>,
        _option: RPCOption,
    ) -> Result<TransferLeaderResponse<Types>, RPCError<Types>> {
        Err(Self::error().into())
    }
}

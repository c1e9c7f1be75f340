//! What operators ask of the cluster, through this node: the service `orderly.admin.v1.Admin`.
//!
//! It has a listener of its own, so that nobody who merely publishes can send a node away: on
//! loopback by default, and beyond it only with the certificates that nodes have for each other.
//!
//! - `nodes`: what the nodes do; how they come to rest, leave, and are replaced.
//! - `keys`: where ordering keys are, and where they shall be.
//! - `regions`, `shards`: what is where, and what is lost with it; a region gets more shards.
//! - `known`: shards and regions by the names that operators type.
//! - `digests`: what the replicas on this node have come to.
//! - `refusal`: why an operator is refused, as a gRPC status.

mod digests;
mod keys;
mod known;
mod nodes;
mod refusal;
mod regions;
mod shards;

use proto::admin::admin_server::{Admin, AdminServer};
use proto::admin::{
    ActivateNodeRequest, AddShardsRequest, AddShardsResponse, DecommissionNodeRequest,
    DigestReplicasRequest, DrainNodeRequest, Key, ListKeysRequest, ListKeysResponse,
    ListNodesRequest, ListNodesResponse, ListRegionsRequest, ListRegionsResponse,
    ListShardsRequest, ListShardsResponse, LocateKeyRequest, LocateKeyResponse, MoveKeysRequest,
    Node, PinKeyRequest, ReplaceNodeRequest,
};
use replica::{ControlClient, Digests, RegistryClient, Replicas, Shards};
use tonic::service::Routes;
use tonic::{Request, Response, Status};

use digests::DigestStream;

/// The service. Any node has it: what it reads and changes is the control group's, but for digests,
/// which are the node's own.
pub(crate) struct AdminService {
    control: ControlClient,
    registry: RegistryClient,
    digests: Digests,
    shards: Shards,
}

impl AdminService {
    /// The service of a node with these replicas, to be served.
    pub(crate) fn routes(replicas: &Replicas) -> Routes {
        Routes::new(AdminServer::new(AdminService {
            control: replicas.control().clone(),
            registry: replicas.registry().clone(),
            digests: replicas.digests().clone(),
            shards: replicas.shards().clone(),
        }))
    }
}

#[tonic::async_trait]
impl Admin for AdminService {
    async fn list_nodes(
        &self,
        _: Request<ListNodesRequest>,
    ) -> Result<Response<ListNodesResponse>, Status> {
        Ok(Response::new(nodes::list(&self.control).await?))
    }

    async fn drain_node(
        &self,
        request: Request<DrainNodeRequest>,
    ) -> Result<Response<Node>, Status> {
        let DrainNodeRequest { node } = request.into_inner();
        Ok(Response::new(nodes::drain(&self.control, &node).await?))
    }

    async fn activate_node(
        &self,
        request: Request<ActivateNodeRequest>,
    ) -> Result<Response<Node>, Status> {
        let ActivateNodeRequest { node } = request.into_inner();
        Ok(Response::new(nodes::activate(&self.control, &node).await?))
    }

    async fn decommission_node(
        &self,
        request: Request<DecommissionNodeRequest>,
    ) -> Result<Response<Node>, Status> {
        let DecommissionNodeRequest { node, force } = request.into_inner();
        let node = nodes::decommission(&self.control, &node, force).await?;
        Ok(Response::new(node))
    }

    async fn replace_node(
        &self,
        request: Request<ReplaceNodeRequest>,
    ) -> Result<Response<Node>, Status> {
        let ReplaceNodeRequest { node } = request.into_inner();
        Ok(Response::new(nodes::replace(&self.control, &node).await?))
    }

    async fn list_regions(
        &self,
        _: Request<ListRegionsRequest>,
    ) -> Result<Response<ListRegionsResponse>, Status> {
        Ok(Response::new(regions::list(&self.control).await?))
    }

    async fn list_shards(
        &self,
        _: Request<ListShardsRequest>,
    ) -> Result<Response<ListShardsResponse>, Status> {
        Ok(Response::new(shards::list(&self.control).await?))
    }

    async fn add_shards(
        &self,
        request: Request<AddShardsRequest>,
    ) -> Result<Response<AddShardsResponse>, Status> {
        let added = shards::add(&self.control, request.into_inner()).await?;
        Ok(Response::new(added))
    }

    type DigestReplicasStream = DigestStream;

    async fn digest_replicas(
        &self,
        request: Request<DigestReplicasRequest>,
    ) -> Result<Response<DigestStream>, Status> {
        let request = request.into_inner();
        Ok(Response::new(digests::read(&self.digests, &request)))
    }

    async fn locate_key(
        &self,
        request: Request<LocateKeyRequest>,
    ) -> Result<Response<LocateKeyResponse>, Status> {
        let request = request.into_inner();
        let located = keys::locate(&self.control, &self.registry, &request).await?;
        Ok(Response::new(located))
    }

    async fn list_keys(
        &self,
        request: Request<ListKeysRequest>,
    ) -> Result<Response<ListKeysResponse>, Status> {
        let request = request.into_inner();
        let listed = keys::list(&self.control, &self.registry, &request).await?;
        Ok(Response::new(listed))
    }

    async fn pin_key(&self, request: Request<PinKeyRequest>) -> Result<Response<Key>, Status> {
        let request = request.into_inner();
        let pinned = keys::pin(&self.control, &self.shards, &request).await?;
        Ok(Response::new(pinned))
    }

    type MoveKeysStream = keys::KeyMoves;

    async fn move_keys(
        &self,
        request: Request<MoveKeysRequest>,
    ) -> Result<Response<keys::KeyMoves>, Status> {
        let request = request.into_inner();
        let moves = keys::move_all(&self.control, &self.shards, &request).await?;
        Ok(Response::new(moves))
    }
}

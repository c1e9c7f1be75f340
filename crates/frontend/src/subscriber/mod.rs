//! The Subscriber service: subscriptions, and what is pulled from them.

pub(crate) mod ack_ids;
pub(crate) mod acknowledge;
pub(crate) mod exactly_once;
pub(crate) mod pull;
mod response;
pub(crate) mod streaming_pull;
mod subscription;
#[cfg(test)]
mod tests;

use proto::pubsub::subscriber_server::Subscriber;
use proto::pubsub::{
    AcknowledgeRequest, CreateSnapshotRequest, DeleteSnapshotRequest, DeleteSubscriptionRequest,
    GetSnapshotRequest, GetSubscriptionRequest, ListSnapshotsRequest, ListSnapshotsResponse,
    ListSubscriptionsRequest, ListSubscriptionsResponse, ModifyAckDeadlineRequest,
    ModifyPushConfigRequest, PullRequest, PullResponse, SeekRequest, SeekResponse, Snapshot,
    StreamingPullRequest, StreamingPullResponse, Subscription, UpdateSnapshotRequest,
    UpdateSubscriptionRequest,
};
use router::Router;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Response, Status, Streaming, async_trait};

use self::acknowledge::Caller;
use crate::Shutdown;
use crate::deadline::{in_time, timeout};
use crate::unsupported::unsupported;

/// Serves `google.pubsub.v1.Subscriber`.
pub(crate) struct SubscriberService {
    router: Router,
    shutdown: Shutdown,
}

impl SubscriberService {
    pub(crate) fn new(router: Router, shutdown: Shutdown) -> Self {
        SubscriberService { router, shutdown }
    }
}

#[async_trait]
impl Subscriber for SubscriberService {
    async fn create_subscription(
        &self,
        request: Request<Subscription>,
    ) -> Result<Response<Subscription>, Status> {
        let timeout = timeout(request.metadata());
        let request = request.into_inner();
        in_time(timeout, subscription::create(&self.router, request)).await
    }

    async fn get_subscription(
        &self,
        request: Request<GetSubscriptionRequest>,
    ) -> Result<Response<Subscription>, Status> {
        let timeout = timeout(request.metadata());
        let request = request.into_inner();
        in_time(timeout, subscription::get(&self.router, &request)).await
    }

    async fn update_subscription(
        &self,
        request: Request<UpdateSubscriptionRequest>,
    ) -> Result<Response<Subscription>, Status> {
        let timeout = timeout(request.metadata());
        let request = request.into_inner();
        in_time(timeout, subscription::update(&self.router, request)).await
    }

    async fn list_subscriptions(
        &self,
        request: Request<ListSubscriptionsRequest>,
    ) -> Result<Response<ListSubscriptionsResponse>, Status> {
        let timeout = timeout(request.metadata());
        let request = request.into_inner();
        in_time(timeout, subscription::list(&self.router, &request)).await
    }

    async fn delete_subscription(
        &self,
        request: Request<DeleteSubscriptionRequest>,
    ) -> Result<Response<()>, Status> {
        let timeout = timeout(request.metadata());
        let request = request.into_inner();
        in_time(timeout, subscription::delete(&self.router, &request)).await
    }

    async fn modify_ack_deadline(
        &self,
        request: Request<ModifyAckDeadlineRequest>,
    ) -> Result<Response<()>, Status> {
        let caller = Caller::of(request.metadata());
        let request = request.into_inner();
        let done = acknowledge::modify_ack_deadline(&self.router, request, &caller).await;
        Ok(Response::new(done?))
    }

    async fn acknowledge(
        &self,
        request: Request<AcknowledgeRequest>,
    ) -> Result<Response<()>, Status> {
        let caller = Caller::of(request.metadata());
        let request = request.into_inner();
        let done = acknowledge::acknowledge(&self.router, request, &caller).await;
        Ok(Response::new(done?))
    }

    async fn pull(&self, request: Request<PullRequest>) -> Result<Response<PullResponse>, Status> {
        let timeout = timeout(request.metadata());
        let shutdown = self.shutdown.clone();
        let pulled = pull::pull(&self.router, request.get_ref(), timeout, shutdown).await?;
        Ok(Response::new(pulled))
    }

    type StreamingPullStream = ReceiverStream<Result<StreamingPullResponse, Status>>;

    /// Answers at once, so that the client sees headers before there is anything to deliver.
    async fn streaming_pull(
        &self,
        request: Request<Streaming<StreamingPullRequest>>,
    ) -> Result<Response<Self::StreamingPullStream>, Status> {
        let (sender, responses) = mpsc::channel(streaming_pull::RESPONSES_WAITING_MAX);
        let requests = request.into_inner();
        let (router, shutdown) = (self.router.clone(), self.shutdown.clone());
        tokio::spawn(streaming_pull::run(router, requests, sender, shutdown));
        Ok(Response::new(ReceiverStream::new(responses)))
    }

    async fn modify_push_config(
        &self,
        _: Request<ModifyPushConfigRequest>,
    ) -> Result<Response<()>, Status> {
        unsupported("ModifyPushConfig")
    }

    async fn get_snapshot(
        &self,
        _: Request<GetSnapshotRequest>,
    ) -> Result<Response<Snapshot>, Status> {
        unsupported("GetSnapshot")
    }

    async fn list_snapshots(
        &self,
        _: Request<ListSnapshotsRequest>,
    ) -> Result<Response<ListSnapshotsResponse>, Status> {
        unsupported("ListSnapshots")
    }

    async fn create_snapshot(
        &self,
        _: Request<CreateSnapshotRequest>,
    ) -> Result<Response<Snapshot>, Status> {
        unsupported("CreateSnapshot")
    }

    async fn update_snapshot(
        &self,
        _: Request<UpdateSnapshotRequest>,
    ) -> Result<Response<Snapshot>, Status> {
        unsupported("UpdateSnapshot")
    }

    async fn delete_snapshot(
        &self,
        _: Request<DeleteSnapshotRequest>,
    ) -> Result<Response<()>, Status> {
        unsupported("DeleteSnapshot")
    }

    async fn seek(&self, _: Request<SeekRequest>) -> Result<Response<SeekResponse>, Status> {
        unsupported("Seek")
    }
}

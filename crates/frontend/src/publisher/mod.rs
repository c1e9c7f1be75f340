//! The Publisher service: topics, and what is published to them.

pub(crate) mod check;
mod publish;
mod topic;

use proto::pubsub::publisher_server::Publisher;
use proto::pubsub::{
    DeleteTopicRequest, DetachSubscriptionRequest, DetachSubscriptionResponse, GetTopicRequest,
    ListTopicSnapshotsRequest, ListTopicSnapshotsResponse, ListTopicSubscriptionsRequest,
    ListTopicSubscriptionsResponse, ListTopicsRequest, ListTopicsResponse, PublishRequest,
    PublishResponse, Topic, UpdateTopicRequest,
};
use router::Router;
use tonic::{Request, Response, Status, async_trait};

use crate::deadline::{in_time, timeout};
use crate::unsupported::unsupported;

/// Serves `google.pubsub.v1.Publisher`.
pub(crate) struct PublisherService {
    router: Router,
}

impl PublisherService {
    pub(crate) fn new(router: Router) -> Self {
        PublisherService { router }
    }
}

#[async_trait]
impl Publisher for PublisherService {
    async fn create_topic(&self, request: Request<Topic>) -> Result<Response<Topic>, Status> {
        let timeout = timeout(request.metadata());
        let request = request.into_inner();
        in_time(timeout, topic::create(&self.router, request)).await
    }

    async fn update_topic(
        &self,
        request: Request<UpdateTopicRequest>,
    ) -> Result<Response<Topic>, Status> {
        let timeout = timeout(request.metadata());
        let request = request.into_inner();
        in_time(timeout, topic::update(&self.router, request)).await
    }

    async fn publish(
        &self,
        request: Request<PublishRequest>,
    ) -> Result<Response<PublishResponse>, Status> {
        let timeout = timeout(request.metadata());
        Ok(Response::new(
            publish::publish(&self.router, request.into_inner(), timeout).await?,
        ))
    }

    async fn get_topic(
        &self,
        request: Request<GetTopicRequest>,
    ) -> Result<Response<Topic>, Status> {
        let timeout = timeout(request.metadata());
        let request = request.into_inner();
        in_time(timeout, topic::get(&self.router, &request)).await
    }

    async fn list_topics(
        &self,
        request: Request<ListTopicsRequest>,
    ) -> Result<Response<ListTopicsResponse>, Status> {
        let timeout = timeout(request.metadata());
        let request = request.into_inner();
        in_time(timeout, topic::list(&self.router, &request)).await
    }

    async fn list_topic_subscriptions(
        &self,
        request: Request<ListTopicSubscriptionsRequest>,
    ) -> Result<Response<ListTopicSubscriptionsResponse>, Status> {
        let timeout = timeout(request.metadata());
        let request = request.into_inner();
        in_time(timeout, topic::list_subscriptions(&self.router, &request)).await
    }

    async fn list_topic_snapshots(
        &self,
        _: Request<ListTopicSnapshotsRequest>,
    ) -> Result<Response<ListTopicSnapshotsResponse>, Status> {
        unsupported("ListTopicSnapshots")
    }

    async fn delete_topic(
        &self,
        request: Request<DeleteTopicRequest>,
    ) -> Result<Response<()>, Status> {
        let timeout = timeout(request.metadata());
        let request = request.into_inner();
        in_time(timeout, topic::delete(&self.router, &request)).await
    }

    async fn detach_subscription(
        &self,
        request: Request<DetachSubscriptionRequest>,
    ) -> Result<Response<DetachSubscriptionResponse>, Status> {
        let timeout = timeout(request.metadata());
        let request = request.into_inner();
        in_time(timeout, topic::detach(&self.router, &request)).await?;
        Ok(Response::new(DetachSubscriptionResponse {}))
    }
}

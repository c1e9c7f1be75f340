//! Topics: created, read, listed, changed, deleted.

use engine::control::read::{self, PageRequest};
use engine::control::{Command, DeleteTopic, DetachSubscription, Rejected};
use model::{ProjectId, SubscriptionName, TopicName};
use proto::pubsub::{
    DeleteTopicRequest, DetachSubscriptionRequest, GetTopicRequest, ListTopicSubscriptionsRequest,
    ListTopicSubscriptionsResponse, ListTopicsRequest, ListTopicsResponse, Topic,
    UpdateTopicRequest,
};
use router::{Router, StateView};

use crate::catalogue;
use crate::convert::{from_topic, to_topic};
use crate::status::Failure;

pub(super) async fn create(router: &Router, topic: Topic) -> Result<Topic, Failure> {
    let create = from_topic(topic).create()?;
    Ok(to_topic(
        catalogue::topic(router, Command::CreateTopic(create)).await?,
    ))
}

pub(super) async fn update(router: &Router, request: UpdateTopicRequest) -> Result<Topic, Failure> {
    let mask = request.update_mask.unwrap_or_default().paths;
    let update = from_topic(request.topic.unwrap_or_default()).update(&mask)?;
    Ok(to_topic(
        catalogue::topic(router, Command::UpdateTopic(update)).await?,
    ))
}

pub(super) async fn get(router: &Router, request: &GetTopicRequest) -> Result<Topic, Failure> {
    let name = TopicName::parse(&request.topic)?;
    let look = |catalogue: &StateView| read::seen_topic(catalogue, &name);
    let found = catalogue::look_up(router, look).await?;
    Ok(to_topic(found.ok_or(Rejected::TopicNotFound(name))?))
}

pub(super) async fn list(
    router: &Router,
    request: &ListTopicsRequest,
) -> Result<ListTopicsResponse, Failure> {
    let project = ProjectId::parse(&request.project)?;
    let page = PageRequest {
        size: request.page_size,
        token: &request.page_token,
    };
    let page = read::topics(catalogue::read(router).await?, &project, &page)?;
    Ok(ListTopicsResponse {
        topics: page.items.into_iter().map(to_topic).collect(),
        next_page_token: page.next_token,
    })
}

pub(super) async fn list_subscriptions(
    router: &Router,
    request: &ListTopicSubscriptionsRequest,
) -> Result<ListTopicSubscriptionsResponse, Failure> {
    let name = TopicName::parse(&request.topic)?;
    let page = PageRequest {
        size: request.page_size,
        token: &request.page_token,
    };
    let page = read::topic_subscriptions(catalogue::read(router).await?, &name, &page)?;
    Ok(ListTopicSubscriptionsResponse {
        subscriptions: page.items.iter().map(ToString::to_string).collect(),
        next_page_token: page.next_token,
    })
}

pub(super) async fn delete(router: &Router, request: &DeleteTopicRequest) -> Result<(), Failure> {
    let name = TopicName::parse(&request.topic)?;
    catalogue::done(router, Command::DeleteTopic(DeleteTopic { name })).await
}

pub(super) async fn detach(
    router: &Router,
    request: &DetachSubscriptionRequest,
) -> Result<(), Failure> {
    let name = SubscriptionName::parse(&request.subscription)?;
    let detach = Command::DetachSubscription(DetachSubscription { name });
    catalogue::done(router, detach).await
}

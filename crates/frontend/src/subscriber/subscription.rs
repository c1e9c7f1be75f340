//! Subscriptions: created, read, listed, changed, deleted.

use engine::control::read::{self, PageRequest};
use engine::control::{Command, DeleteSubscription, Rejected};
use model::{ProjectId, SubscriptionName};
use proto::pubsub::{
    DeleteSubscriptionRequest, GetSubscriptionRequest, ListSubscriptionsRequest,
    ListSubscriptionsResponse, Subscription, UpdateSubscriptionRequest,
};
use router::{Router, StateView};

use crate::catalogue;
use crate::convert::{from_subscription, to_subscription};
use crate::status::Failure;

pub(super) async fn create(
    router: &Router,
    subscription: Subscription,
) -> Result<Subscription, Failure> {
    let create = Command::CreateSubscription(from_subscription(subscription).create()?);
    Ok(to_subscription(
        catalogue::subscription(router, create).await?,
    ))
}

pub(super) async fn update(
    router: &Router,
    request: UpdateSubscriptionRequest,
) -> Result<Subscription, Failure> {
    let mask = request.update_mask.unwrap_or_default().paths;
    let update = from_subscription(request.subscription.unwrap_or_default()).update(&mask)?;
    let update = Command::UpdateSubscription(update);
    Ok(to_subscription(
        catalogue::subscription(router, update).await?,
    ))
}

pub(super) async fn get(
    router: &Router,
    request: &GetSubscriptionRequest,
) -> Result<Subscription, Failure> {
    let name = SubscriptionName::parse(&request.subscription)?;
    let look = |catalogue: &StateView| read::seen_subscription(catalogue, &name);
    let found = catalogue::look_up(router, look).await?;
    Ok(to_subscription(
        found.ok_or(Rejected::SubscriptionNotFound(name))?,
    ))
}

pub(super) async fn list(
    router: &Router,
    request: &ListSubscriptionsRequest,
) -> Result<ListSubscriptionsResponse, Failure> {
    let project = ProjectId::parse(&request.project)?;
    let page = PageRequest {
        size: request.page_size,
        token: &request.page_token,
    };
    let page = read::subscriptions(catalogue::read(router).await?, &project, &page)?;
    Ok(ListSubscriptionsResponse {
        subscriptions: page.items.into_iter().map(to_subscription).collect(),
        next_page_token: page.next_token,
    })
}

pub(super) async fn delete(
    router: &Router,
    request: &DeleteSubscriptionRequest,
) -> Result<(), Failure> {
    let name = SubscriptionName::parse(&request.subscription)?;
    catalogue::done(
        router,
        Command::DeleteSubscription(DeleteSubscription { name }),
    )
    .await
}

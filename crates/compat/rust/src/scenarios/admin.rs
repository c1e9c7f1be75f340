//! Resources: create with defaults, update by mask, delete.

use anyhow::{Context, Result, bail};
use google_cloud_gax::error::rpc::Code;
use google_cloud_pubsub::client::{SubscriptionAdmin, TopicAdmin};
use google_cloud_pubsub::error::PublishError;
use google_cloud_pubsub::model::{Subscription, Topic};
use google_cloud_wkt::FieldMask;
use tokio::time::timeout;

use crate::stage::{
    PATIENCE, PROJECT, Skipped, Stage, anonymous, close, expect_code, expect_equal, next, numbered,
};

/// The official clients of topics and subscriptions, which speak REST.
struct Admin {
    topics: TopicAdmin,
    subscriptions: SubscriptionAdmin,
}

impl Admin {
    /// Skips the scenario if the server does not speak REST.
    async fn new(stage: &Stage) -> Result<Self> {
        let topics = TopicAdmin::builder()
            .with_endpoint(&stage.endpoint)
            .with_credentials(anonymous())
            .build()
            .await?;
        let project = format!("projects/{PROJECT}");
        let list = topics.list_topics().set_project(project).send().await;
        if list.is_err_and(|error| error.status().is_none()) {
            bail!(Skipped("the administration of this client needs REST"));
        }
        let subscriptions = SubscriptionAdmin::builder()
            .with_endpoint(&stage.endpoint)
            .with_credentials(anonymous())
            .build()
            .await?;
        Ok(Self {
            topics,
            subscriptions,
        })
    }
}

pub async fn create(stage: Stage) -> Result<()> {
    let admin = Admin::new(&stage).await?;
    let topic = stage.topic_name("topic");
    let name = stage.subscription_name("sub");
    let create_topic = || admin.topics.create_topic().set_name(&topic).send();
    let create_subscription = || {
        let create = admin.subscriptions.create_subscription();
        create
            .set_name(&name)
            .set_topic(&topic)
            .set_enable_message_ordering(true)
            .send()
    };

    create_topic().await?;
    create_subscription().await?;
    let get = admin.subscriptions.get_subscription();
    let subscription = get.set_subscription(&name).send().await?;
    expect_equal(&subscription.topic, &topic, "topic")?;
    expect_equal(subscription.ack_deadline_seconds, 10, "ack deadline")?;
    let retention = subscription.message_retention_duration;
    let days = retention.context("no retention")?.seconds() / 86_400;
    expect_equal(days, 7, "retention in days")?;
    expect_equal(subscription.enable_message_ordering, true, "ordering")?;
    let exactly_once = subscription.enable_exactly_once_delivery;
    expect_equal(exactly_once, false, "exactly-once")?;
    expect_equal(&subscription.filter, "", "filter")?;
    let list = admin.topics.list_topic_subscriptions();
    let listed = list.set_topic(&topic).send().await?.subscriptions;
    expect_equal(listed, [name.as_str()], "subscriptions of the topic")?;

    let again = create_topic().await;
    expect_code(again, Code::AlreadyExists, "second creation of the topic")?;
    let again = create_subscription().await;
    expect_code(again, Code::AlreadyExists, "of the subscription")
}

pub async fn update(stage: Stage) -> Result<()> {
    const FILTER: &str = "attributes.lang = \"en\"";
    let admin = Admin::new(&stage).await?;
    let topic = stage.topic("topic").await?;
    let name = stage.subscription_name("sub");
    let create = admin.subscriptions.create_subscription();
    let create = create.set_name(&name).set_topic(&topic).set_filter(FILTER);
    create.send().await?;

    let labelled = admin.topics.update_topic();
    let labelled = labelled
        .set_topic(Topic::new().set_name(&topic).set_labels([("team", "a")]))
        .set_update_mask(FieldMask::default().set_paths(["labels"]))
        .send()
        .await?;
    expect_equal(labelled.labels["team"].as_str(), "a", "label of the topic")?;

    let change = |fields: Subscription, paths: &[&str]| {
        let update = admin.subscriptions.update_subscription();
        update
            .set_subscription(fields.set_name(&name).set_topic(&topic))
            .set_update_mask(FieldMask::default().set_paths(paths.iter().copied()))
            .send()
    };
    let fields = Subscription::new()
        .set_labels([("team", "b")])
        .set_ack_deadline_seconds(45);
    let changed = change(fields, &["labels", "ack_deadline_seconds"]).await?;
    expect_equal(changed.labels["team"].as_str(), "b", "label")?;
    expect_equal(changed.ack_deadline_seconds, 45, "ack deadline")?;

    let other = Subscription::new().set_filter("attributes.lang = \"fr\"");
    let refused = change(other, &["filter"]).await;
    expect_code(refused, Code::InvalidArgument, "change of the filter")?;
    let get = admin.subscriptions.get_subscription();
    let stored = get.set_subscription(&name).send().await?;
    expect_equal(&stored.filter, FILTER, "filter")?;
    expect_equal(stored.ack_deadline_seconds, 45, "stored ack deadline")
}

pub async fn delete(stage: Stage) -> Result<()> {
    let topic = stage.topic("topic").await?;
    let name = stage.subscription(&topic, "sub").await?;
    let orphan = stage.subscription(&topic, "orphan").await?;
    let mut stream = stage.subscriber.subscribe(&name).build();

    stage.publish(&topic, "key", [1]).await?;
    next(&mut stream).await?.1.ack();
    stage.setup.delete_subscription(&name).await?;
    let ended = timeout(PATIENCE, stream.next()).await;
    let ended = ended.context("the stream goes on")?;
    let ended = ended.context("the stream ended without an error")?;
    expect_code(ended, Code::NotFound, "open stream")?;
    close(stream).await?;
    let gone = stage.setup.topic_of(&name).await;
    let code = gone.err().map(|status| status.code());
    expect_equal(code, Some(tonic::Code::NotFound), "get of the subscription")?;

    stage.setup.delete_topic(&topic).await?;
    let publisher = stage.publisher(&topic).await?;
    match timeout(PATIENCE, publisher.publish(numbered("key", 2))).await? {
        Err(PublishError::Rpc(error)) => {
            let code = error.status().map(|status| status.code);
            expect_equal(code, Some(Code::NotFound), "publish")?;
        }
        other => bail!("publish to a deleted topic: {other:?}"),
    }
    let orphaned = stage.setup.topic_of(&orphan).await?;
    expect_equal(orphaned, "_deleted-topic_", "topic of the orphan")
}

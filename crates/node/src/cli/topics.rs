//! `orderly topics`.

mod publish;

use std::collections::BTreeMap;

use clap::{Args, Subcommand};
use proto::pubsub::{
    DeleteTopicRequest, DetachSubscriptionRequest, GetTopicRequest, ListTopicSubscriptionsRequest,
    ListTopicsRequest, Topic, UpdateTopicRequest, topic,
};
use serde_json::Value;

use super::fields::Fields;
use super::labels::LabelChange;
use super::output::{Show, print_done, print_one, print_rows};
use super::resource::{ResourceName, key_value, pairs};
use super::{Failure, Format, Target};

#[derive(Debug, Subcommand)]
pub(crate) enum Topics {
    /// Creates topics.
    Create(Create),
    /// Lists the topics of the project.
    List,
    /// Shows a topic.
    Describe {
        /// Its id, or full name.
        topic: String,
    },
    /// Changes a topic.
    Update(Update),
    /// Deletes topics. Their subscriptions stay, with what they have not acknowledged.
    Delete {
        /// Ids, or full names.
        #[arg(required = true, value_name = "TOPIC")]
        topics: Vec<String>,
    },
    /// Lists the subscriptions of a topic.
    ListSubscriptions {
        /// Its id, or full name.
        topic: String,
    },
    /// Detaches subscriptions from their topic for ever, and drops their backlog.
    DetachSubscription {
        /// Ids, or full names.
        #[arg(required = true, value_name = "SUBSCRIPTION")]
        subscriptions: Vec<String>,
    },
    /// Publishes one message and prints its id.
    Publish(publish::Publish),
}

#[derive(Debug, Args)]
pub(crate) struct Create {
    /// Ids, or full names.
    #[arg(required = true, value_name = "TOPIC")]
    topics: Vec<String>,
    /// Labels of the topics.
    #[arg(long, value_parser = key_value, value_delimiter = ',', value_name = "KEY=VALUE")]
    labels: Vec<(String, String)>,
}

#[derive(Debug, Args)]
pub(crate) struct Update {
    /// Its id, or full name.
    topic: String,
    #[command(flatten)]
    labels: LabelChange,
}

impl Topics {
    pub(crate) async fn run(self, target: &Target, output: Format) -> Result<(), Failure> {
        match self {
            Topics::Create(create) => create.run(target, output).await,
            Topics::List => list(target, output).await,
            Topics::Describe { topic } => describe(target, output, &topic).await,
            Topics::Update(update) => update.run(target, output).await,
            Topics::Delete { topics } => delete(target, output, &topics).await,
            Topics::ListSubscriptions { topic } => list_subscriptions(target, output, &topic).await,
            Topics::DetachSubscription { subscriptions } => {
                detach(target, output, &subscriptions).await
            }
            Topics::Publish(publish) => publish.run(target, output).await,
        }
    }
}

impl Create {
    async fn run(self, target: &Target, output: Format) -> Result<(), Failure> {
        let names = target.topics(&self.topics)?;
        let labels = BTreeMap::from_iter(self.labels);
        let mut publisher = target.publisher().await?;
        let mut created = Vec::new();
        for name in names {
            let topic = Topic {
                name,
                labels: labels.clone(),
                ..Topic::default()
            };
            created.push(publisher.create_topic(topic).await?.into_inner());
        }
        print_rows(output, &created);
        Ok(())
    }
}

impl Update {
    async fn run(self, target: &Target, output: Format) -> Result<(), Failure> {
        if self.labels.is_empty() {
            return Err(Failure::nothing_to_update());
        }
        let request = GetTopicRequest {
            topic: target.topic(&self.topic)?,
        };
        let mut publisher = target.publisher().await?;
        let mut topic = publisher.get_topic(request).await?.into_inner();
        self.labels.apply(&mut topic.labels);
        let request = UpdateTopicRequest {
            topic: Some(topic),
            update_mask: Some(prost_types::FieldMask {
                paths: vec!["labels".into()],
            }),
        };
        print_one(output, &publisher.update_topic(request).await?.into_inner());
        Ok(())
    }
}

async fn list(target: &Target, output: Format) -> Result<(), Failure> {
    let mut publisher = target.publisher().await?;
    let mut topics = Vec::new();
    let mut request = ListTopicsRequest {
        project: target.project_name(),
        ..Default::default()
    };
    loop {
        let page = publisher.list_topics(request.clone()).await?.into_inner();
        topics.extend(page.topics);
        request.page_token = page.next_page_token;
        if request.page_token.is_empty() {
            print_rows(output, &topics);
            return Ok(());
        }
    }
}

async fn describe(target: &Target, output: Format, topic: &str) -> Result<(), Failure> {
    let request = GetTopicRequest {
        topic: target.topic(topic)?,
    };
    let topic = target
        .publisher()
        .await?
        .get_topic(request)
        .await?
        .into_inner();
    print_one(output, &topic);
    Ok(())
}

async fn delete(target: &Target, output: Format, topics: &[String]) -> Result<(), Failure> {
    let names = target.topics(topics)?;
    let mut publisher = target.publisher().await?;
    for topic in names.iter().cloned() {
        publisher.delete_topic(DeleteTopicRequest { topic }).await?;
    }
    print_done(output, "Deleted topic", &names);
    Ok(())
}

async fn list_subscriptions(target: &Target, output: Format, topic: &str) -> Result<(), Failure> {
    let topic = target.topic(topic)?;
    let mut publisher = target.publisher().await?;
    let mut names = Vec::new();
    let mut request = ListTopicSubscriptionsRequest {
        topic,
        ..Default::default()
    };
    loop {
        let page = publisher
            .list_topic_subscriptions(request.clone())
            .await?
            .into_inner();
        names.extend(page.subscriptions.into_iter().map(ResourceName));
        request.page_token = page.next_page_token;
        if request.page_token.is_empty() {
            print_rows(output, &names);
            return Ok(());
        }
    }
}

async fn detach(target: &Target, output: Format, subscriptions: &[String]) -> Result<(), Failure> {
    let names = target.subscriptions(subscriptions)?;
    let mut publisher = target.publisher().await?;
    for subscription in names.iter().cloned() {
        publisher
            .detach_subscription(DetachSubscriptionRequest { subscription })
            .await?;
    }
    print_done(output, "Detached subscription", &names);
    Ok(())
}

impl Show for Topic {
    const COLUMNS: &'static [&'static str] = &["NAME", "LABELS"];

    fn cells(&self) -> Vec<String> {
        vec![self.name.clone(), pairs(&self.labels)]
    }

    fn json(&self) -> Value {
        let mut fields = Fields::default();
        fields.text("name", &self.name);
        fields.map("labels", &self.labels);
        if let Some(policy) = &self.message_storage_policy {
            let mut inner = Fields::default();
            inner.list(
                "allowedPersistenceRegions",
                &policy.allowed_persistence_regions,
            );
            inner.flag("enforceInTransit", policy.enforce_in_transit);
            fields.put("messageStoragePolicy", inner.into());
        }
        if let Ok(state) = topic::State::try_from(self.state) {
            fields.text("state", state.as_str_name());
        }
        fields.into()
    }
}

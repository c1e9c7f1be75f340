//! `orderly subscriptions`.

mod create;
mod message;
mod pull;
mod show;
mod update;

use clap::{Args, Subcommand};
use proto::pubsub::{
    AcknowledgeRequest, DeleteSubscriptionRequest, GetSubscriptionRequest,
    ListSubscriptionsRequest, ModifyAckDeadlineRequest,
};

use super::output::{print_done, print_one, print_rows};
use super::resource::seconds;
use super::{Failure, Format, Target};

pub(crate) use message::decode;

#[derive(Debug, Subcommand)]
pub(crate) enum Subscriptions {
    /// Creates subscriptions of a topic.
    Create(create::Create),
    /// Changes a subscription.
    Update(update::Update),
    /// Lists the subscriptions of the project.
    List,
    /// Shows a subscription.
    Describe {
        /// Its id, or full name.
        subscription: String,
    },
    /// Deletes subscriptions and their backlogs.
    Delete {
        /// Ids, or full names.
        #[arg(required = true, value_name = "SUBSCRIPTION")]
        subscriptions: Vec<String>,
    },
    /// Pulls messages once.
    Pull(pull::Pull),
    /// Acknowledges messages.
    Ack(Ids),
    /// Lets messages come again later, or at once with 0.
    ModifyMessageAckDeadline {
        #[command(flatten)]
        ids: Ids,
        /// Counted from now: 0 to 600 seconds.
        #[arg(long, value_parser = seconds, value_name = "SECONDS")]
        ack_deadline: i32,
    },
}

#[derive(Debug, Args)]
pub(crate) struct Ids {
    /// The subscription's id, or full name.
    subscription: String,
    /// Ack ids, as a pull printed them.
    #[arg(long, value_delimiter = ',', required = true, value_name = "ACK_ID")]
    ack_ids: Vec<String>,
}

impl Subscriptions {
    pub(crate) async fn run(self, target: &Target, output: Format) -> Result<(), Failure> {
        match self {
            Subscriptions::Create(create) => create.run(target, output).await,
            Subscriptions::Update(update) => update.run(target, output).await,
            Subscriptions::List => list(target, output).await,
            Subscriptions::Describe { subscription } => {
                describe(target, output, &subscription).await
            }
            Subscriptions::Delete { subscriptions } => delete(target, output, &subscriptions).await,
            Subscriptions::Pull(pull) => pull.run(target, output).await,
            Subscriptions::Ack(ids) => acknowledge(target, output, ids).await,
            Subscriptions::ModifyMessageAckDeadline { ids, ack_deadline } => {
                modify(target, output, ids, ack_deadline).await
            }
        }
    }
}

async fn list(target: &Target, output: Format) -> Result<(), Failure> {
    let project = target.project_name();
    let mut subscriber = target.subscriber().await?;
    let mut subscriptions = Vec::new();
    let mut request = ListSubscriptionsRequest {
        project,
        ..Default::default()
    };
    loop {
        let page = subscriber
            .list_subscriptions(request.clone())
            .await?
            .into_inner();
        subscriptions.extend(page.subscriptions);
        request.page_token = page.next_page_token;
        if request.page_token.is_empty() {
            print_rows(output, &subscriptions);
            return Ok(());
        }
    }
}

async fn describe(target: &Target, output: Format, subscription: &str) -> Result<(), Failure> {
    let request = GetSubscriptionRequest {
        subscription: target.subscription(subscription)?,
    };
    let found = target
        .subscriber()
        .await?
        .get_subscription(request)
        .await?
        .into_inner();
    print_one(output, &found);
    Ok(())
}

async fn delete(target: &Target, output: Format, subscriptions: &[String]) -> Result<(), Failure> {
    let names = target.subscriptions(subscriptions)?;
    let mut subscriber = target.subscriber().await?;
    for subscription in names.iter().cloned() {
        subscriber
            .delete_subscription(DeleteSubscriptionRequest { subscription })
            .await?;
    }
    print_done(output, "Deleted subscription", &names);
    Ok(())
}

async fn acknowledge(target: &Target, output: Format, ids: Ids) -> Result<(), Failure> {
    let subscription = target.subscription(&ids.subscription)?;
    let request = AcknowledgeRequest {
        subscription,
        ack_ids: ids.ack_ids.clone(),
    };
    target.subscriber().await?.acknowledge(request).await?;
    print_done(output, "Acknowledged", &ids.ack_ids);
    Ok(())
}

async fn modify(
    target: &Target,
    output: Format,
    ids: Ids,
    ack_deadline_seconds: i32,
) -> Result<(), Failure> {
    let request = ModifyAckDeadlineRequest {
        subscription: target.subscription(&ids.subscription)?,
        ack_ids: ids.ack_ids.clone(),
        ack_deadline_seconds,
    };
    target
        .subscriber()
        .await?
        .modify_ack_deadline(request)
        .await?;
    print_done(
        output,
        &format!("Set {ack_deadline_seconds} s for"),
        &ids.ack_ids,
    );
    Ok(())
}

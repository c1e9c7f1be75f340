//! `orderly subscriptions update`.

use clap::Args;
use proto::pubsub::{GetSubscriptionRequest, UpdateSubscriptionRequest};

use super::create::Settings;
use crate::cli::labels::LabelChange;
use crate::cli::output::print_one;
use crate::cli::{Failure, Format, Target};

#[derive(Debug, Args)]
pub(crate) struct Update {
    /// The subscription's id, or full name.
    subscription: String,
    /// No message comes again before its deadline, nor after its ack has succeeded.
    #[arg(long)]
    enable_exactly_once_delivery: bool,
    /// Back to at-least-once delivery.
    #[arg(long, conflicts_with = "enable_exactly_once_delivery")]
    no_enable_exactly_once_delivery: bool,
    /// No message goes to a dead-letter topic any more.
    #[arg(long, conflicts_with_all = ["dead_letter_topic", "max_delivery_attempts"])]
    clear_dead_letter_policy: bool,
    /// Failed messages come again at once.
    #[arg(long, conflicts_with_all = ["min_retry_delay", "max_retry_delay"])]
    clear_retry_policy: bool,
    #[command(flatten)]
    labels: LabelChange,
    #[command(flatten)]
    settings: Settings,
}

impl Update {
    /// Reads the subscription first: labels and policies change in part.
    pub(crate) async fn run(self, target: &Target, output: Format) -> Result<(), Failure> {
        let name = target.subscription(&self.subscription)?;
        let mut subscriber = target.subscriber().await?;
        let request = GetSubscriptionRequest { subscription: name };
        let mut subscription = subscriber.get_subscription(request).await?.into_inner();

        let mut paths = self.settings.apply(target, &mut subscription)?;
        if self.enable_exactly_once_delivery || self.no_enable_exactly_once_delivery {
            subscription.enable_exactly_once_delivery = self.enable_exactly_once_delivery;
            paths.push("enable_exactly_once_delivery");
        }
        if self.clear_dead_letter_policy {
            subscription.dead_letter_policy = None;
            paths.push("dead_letter_policy");
        }
        if self.clear_retry_policy {
            subscription.retry_policy = None;
            paths.push("retry_policy");
        }
        if !self.labels.is_empty() {
            self.labels.apply(&mut subscription.labels);
            paths.push("labels");
        }
        if paths.is_empty() {
            return Err(Failure::nothing_to_update());
        }
        let paths = paths.into_iter().map(str::to_owned).collect();
        let request = UpdateSubscriptionRequest {
            subscription: Some(subscription),
            update_mask: Some(prost_types::FieldMask { paths }),
        };
        print_one(
            output,
            &subscriber.update_subscription(request).await?.into_inner(),
        );
        Ok(())
    }
}

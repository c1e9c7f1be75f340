//! `orderly subscriptions create`, and the settings that it shares with `update`.

use std::collections::BTreeMap;

use clap::Args;
use proto::pubsub::{DeadLetterPolicy, RetryPolicy, Subscription};

use crate::cli::output::print_rows;
use crate::cli::resource::{key_value, seconds};
use crate::cli::{Failure, Format, Target};

#[derive(Debug, Args)]
pub(crate) struct Create {
    /// Ids, or full names.
    #[arg(required = true, value_name = "SUBSCRIPTION")]
    subscriptions: Vec<String>,
    /// The topic's id, or full name.
    #[arg(long)]
    topic: String,
    /// Messages of one key arrive in order. Fixed at creation.
    #[arg(long)]
    enable_message_ordering: bool,
    /// No message comes again before its deadline, nor after its ack has succeeded.
    #[arg(long)]
    enable_exactly_once_delivery: bool,
    /// Only messages whose attributes match. Fixed at creation.
    #[arg(
        long,
        default_value = "",
        hide_default_value = true,
        value_name = "FILTER"
    )]
    message_filter: String,
    /// Labels of the subscriptions.
    #[arg(long, value_parser = key_value, value_delimiter = ',', value_name = "KEY=VALUE")]
    labels: Vec<(String, String)>,
    #[command(flatten)]
    settings: Settings,
}

/// What can also be changed later.
#[derive(Debug, Args)]
pub(super) struct Settings {
    /// How long a message may go without an ack: 10 to 600 seconds.
    #[arg(long, value_parser = seconds, value_name = "SECONDS")]
    ack_deadline: Option<i32>,
    /// Where messages go that failed too often.
    #[arg(long, value_name = "TOPIC")]
    dead_letter_topic: Option<String>,
    /// Failures before that: 5 to 100.
    #[arg(long, value_name = "COUNT")]
    max_delivery_attempts: Option<i32>,
    /// The wait after a first failure.
    #[arg(long, value_parser = seconds, value_name = "DURATION")]
    min_retry_delay: Option<i32>,
    /// The longest wait after failures.
    #[arg(long, value_parser = seconds, value_name = "DURATION")]
    max_retry_delay: Option<i32>,
}

impl Create {
    pub(crate) async fn run(self, target: &Target, output: Format) -> Result<(), Failure> {
        let names = target.subscriptions(&self.subscriptions)?;
        let mut template = Subscription {
            topic: target.topic(&self.topic)?,
            enable_message_ordering: self.enable_message_ordering,
            enable_exactly_once_delivery: self.enable_exactly_once_delivery,
            filter: self.message_filter,
            labels: BTreeMap::from_iter(self.labels),
            ..Subscription::default()
        };
        self.settings.apply(target, &mut template)?;
        let mut subscriber = target.subscriber().await?;
        let mut created = Vec::new();
        for name in names {
            let subscription = Subscription {
                name,
                ..template.clone()
            };
            created.push(
                subscriber
                    .create_subscription(subscription)
                    .await?
                    .into_inner(),
            );
        }
        print_rows(output, &created);
        Ok(())
    }
}

impl Settings {
    /// Puts what was given into a subscription, which keeps the rest of what it has. Returns the
    /// fields that this touched.
    pub(super) fn apply(
        self,
        target: &Target,
        subscription: &mut Subscription,
    ) -> Result<Vec<&'static str>, Failure> {
        let mut touched = Vec::new();
        if let Some(seconds) = self.ack_deadline {
            subscription.ack_deadline_seconds = seconds;
            touched.push("ack_deadline_seconds");
        }
        if self.dead_letter_topic.is_some() || self.max_delivery_attempts.is_some() {
            self.apply_dead_letter(target, &mut subscription.dead_letter_policy)?;
            touched.push("dead_letter_policy");
        }
        if self.min_retry_delay.is_some() || self.max_retry_delay.is_some() {
            self.apply_retry(&mut subscription.retry_policy);
            touched.push("retry_policy");
        }
        Ok(touched)
    }

    fn apply_dead_letter(
        &self,
        target: &Target,
        policy: &mut Option<DeadLetterPolicy>,
    ) -> Result<(), Failure> {
        if policy.is_none() && self.dead_letter_topic.is_none() {
            let text = "--max-delivery-attempts needs --dead-letter-topic";
            return Err(Failure::Usage(text.into()));
        }
        let policy = policy.get_or_insert_default();
        if let Some(topic) = &self.dead_letter_topic {
            policy.dead_letter_topic = target.topic(topic)?;
        }
        if let Some(attempts) = self.max_delivery_attempts {
            policy.max_delivery_attempts = attempts;
        }
        Ok(())
    }

    fn apply_retry(&self, policy: &mut Option<RetryPolicy>) {
        let policy = policy.get_or_insert_default();
        if let Some(seconds) = self.min_retry_delay {
            policy.minimum_backoff = Some(duration(seconds));
        }
        if let Some(seconds) = self.max_retry_delay {
            policy.maximum_backoff = Some(duration(seconds));
        }
    }
}

fn duration(seconds: i32) -> prost_types::Duration {
    prost_types::Duration {
        seconds: i64::from(seconds),
        nanos: 0,
    }
}

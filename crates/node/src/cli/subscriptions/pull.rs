//! `orderly subscriptions pull`.

use clap::Args;
use proto::pubsub::{AcknowledgeRequest, PullRequest};

use super::decode;
use crate::cli::output::print_rows;
use crate::cli::{Failure, Format, Target};

#[derive(Debug, Args)]
pub(crate) struct Pull {
    /// The subscription's id, or full name.
    subscription: String,
    /// Acknowledges what it prints.
    #[arg(long)]
    auto_ack: bool,
    /// How many messages at most.
    #[arg(long, default_value_t = 1, value_name = "COUNT")]
    limit: i32,
    /// Does not wait for a message if there is none.
    #[arg(long)]
    no_wait: bool,
}

impl Pull {
    pub(crate) async fn run(self, target: &Target, output: Format) -> Result<(), Failure> {
        let subscription = target.subscription(&self.subscription)?;
        let mut subscriber = target.subscriber().await?;
        #[allow(deprecated, reason = "it is how a caller says that it does not wait")]
        let request = PullRequest {
            subscription: subscription.clone(),
            max_messages: self.limit,
            return_immediately: self.no_wait,
        };
        let response = subscriber.pull(request).await?.into_inner();
        let mut received = decode(&response.received_messages)?;
        if !self.auto_ack {
            print_rows(output, &received);
            return Ok(());
        }
        // Taken out, because nobody needs them any more.
        let ack_ids: Vec<_> = received
            .iter_mut()
            .map(|message| std::mem::take(&mut message.ack_id))
            .collect();
        // Printed before the ack: what is lost with a broken pipe comes again.
        print_rows(output, &received);
        if !ack_ids.is_empty() {
            subscriber
                .acknowledge(AcknowledgeRequest {
                    subscription,
                    ack_ids,
                })
                .await?;
        }
        Ok(())
    }
}

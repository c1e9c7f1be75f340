//! `orderly tail`: the messages of a subscription as they come.

use clap::Args;
use proto::pubsub::subscriber_client::SubscriberClient;
use proto::pubsub::{AcknowledgeRequest, StreamingPullRequest, StreamingPullResponse};
use tonic::transport::Channel;

use super::output::print_next;
use super::session::{REOPEN, is_passing, requests};
use super::subscriptions::decode;
use super::{Failure, Format, Target};

/// What the stream asks as its ack deadline: a message is acknowledged as soon as it is printed.
const ACK_DEADLINE_SECONDS: i32 = 60;
/// Messages that may be on their way here at once.
const OUTSTANDING_MESSAGES_MAX: i64 = 1_000;

#[derive(Debug, Args)]
pub(crate) struct Tail {
    /// The subscription's id, or full name.
    subscription: String,
    /// Prints without acknowledging: every message comes again.
    #[arg(long)]
    no_ack: bool,
    /// Stops after so many messages.
    #[arg(long, value_name = "COUNT")]
    limit: Option<usize>,
}

/// A tail at work.
struct Reader {
    output: Format,
    subscription: String,
    acknowledges: bool,
    /// Messages still to print.
    left: usize,
}

impl Tail {
    /// Goes on through restarts of the node until the limit; stops at an error that no retry mends.
    pub(crate) async fn run(self, target: &Target, output: Format) -> Result<(), Failure> {
        let subscription = target.subscription(&self.subscription)?;
        let left = self.limit.unwrap_or(usize::MAX);
        let mut reader = Reader {
            output,
            subscription,
            acknowledges: !self.no_ack,
            left,
        };
        // A node that is not there at all is more likely a wrong address than a restart.
        let mut subscriber = target.subscriber().await?;
        loop {
            match reader.stream(&mut subscriber).await {
                Err(Failure::Refused(status)) if is_passing(status.code()) => {}
                ended => ended?,
            }
            if reader.left == 0 {
                return Ok(());
            }
            tokio::time::sleep(REOPEN).await;
        }
    }
}

impl Reader {
    /// Prints what one stream brings, until it ends or the limit is reached.
    async fn stream(&mut self, subscriber: &mut SubscriberClient<Channel>) -> Result<(), Failure> {
        let left = i64::try_from(self.left).unwrap_or(i64::MAX);
        let first = StreamingPullRequest {
            subscription: self.subscription.clone(),
            stream_ack_deadline_seconds: ACK_DEADLINE_SECONDS,
            max_outstanding_messages: left.min(OUTSTANDING_MESSAGES_MAX),
            ..StreamingPullRequest::default()
        };
        let mut responses = subscriber
            .streaming_pull(requests(first))
            .await?
            .into_inner();
        while self.left > 0 {
            match responses.message().await? {
                Some(response) => self.take(subscriber, &response).await?,
                None => return Ok(()),
            }
        }
        Ok(())
    }

    async fn take(
        &mut self,
        subscriber: &mut SubscriberClient<Channel>,
        response: &StreamingPullResponse,
    ) -> Result<(), Failure> {
        let mut received = decode(&response.received_messages)?;
        received.truncate(self.left);
        self.left -= received.len();
        let mut ack_ids = Vec::new();
        for message in &mut received {
            if self.acknowledges {
                ack_ids.push(std::mem::take(&mut message.ack_id));
            }
            print_next(self.output, message);
        }
        if !ack_ids.is_empty() {
            let subscription = self.subscription.clone();
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

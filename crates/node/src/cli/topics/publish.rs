//! `orderly topics publish`.

use std::collections::BTreeMap;

use clap::Args;
use proto::pubsub::{PublishRequest, PublishResponse, PubsubMessage};
use serde_json::{Value, json};

use crate::cli::output::{Show, print_one};
use crate::cli::resource::key_value;
use crate::cli::{Failure, Format, Target};

#[derive(Debug, Args)]
pub(crate) struct Publish {
    /// The topic's id, or full name.
    topic: String,
    /// The body of the message.
    #[arg(
        long,
        default_value = "",
        hide_default_value = true,
        allow_hyphen_values = true
    )]
    message: String,
    /// Messages with the same key arrive in order.
    #[arg(long, default_value = "", hide_default_value = true)]
    ordering_key: String,
    /// Attributes of the message.
    #[arg(long, value_parser = key_value, value_delimiter = ',', value_name = "KEY=VALUE")]
    attribute: Vec<(String, String)>,
}

impl Publish {
    pub(crate) async fn run(self, target: &Target, output: Format) -> Result<(), Failure> {
        let message = PubsubMessage {
            data: self.message.into(),
            attributes: BTreeMap::from_iter(self.attribute),
            ordering_key: self.ordering_key,
            ..PubsubMessage::default()
        };
        if message.data.is_empty() && message.attributes.is_empty() {
            return Err(Failure::Usage(
                "give --message, or --attribute, or both".into(),
            ));
        }
        let request = PublishRequest {
            topic: target.topic(&self.topic)?,
            messages: proto::wire::encode_all(&[message]),
        };
        print_one(
            output,
            &target
                .publisher()
                .await?
                .publish(request)
                .await?
                .into_inner(),
        );
        Ok(())
    }
}

impl Show for PublishResponse {
    const COLUMNS: &'static [&'static str] = &["MESSAGE_ID"];

    fn cells(&self) -> Vec<String> {
        vec![self.message_ids.join(",")]
    }

    fn json(&self) -> Value {
        json!({ "messageIds": self.message_ids })
    }
}

//! What one scenario plays on: the official clients, and resources with fresh names.

use std::env;
use std::error::Error;
use std::fmt::{self, Debug};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, ensure};
use google_cloud_auth::credentials::{Credentials, anonymous};
use google_cloud_gax::error::rpc::Code;
use google_cloud_pubsub::client::{Publisher, Subscriber};
use google_cloud_pubsub::model::Message;
use google_cloud_pubsub::subscriber::MessageStream;
use google_cloud_pubsub::subscriber::handler::Handler;
use tokio::time::timeout;

use crate::setup::{Setup, Subscription};

pub const PROJECT: &str = "compat";

/// How long a scenario waits for anything that should happen at once.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// Why a scenario is not played.
#[derive(Debug)]
pub struct Skipped(pub &'static str);

impl fmt::Display for Skipped {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.0)
    }
}

impl Error for Skipped {}

/// Clients of one scenario; its topics and subscriptions bear the scenario's name.
pub struct Stage {
    prefix: String,
    pub endpoint: String,
    pub setup: Setup,
    pub subscriber: Subscriber,
}

impl Stage {
    pub async fn new(scenario: &str) -> Result<Self> {
        let host = env::var("PUBSUB_EMULATOR_HOST").context("PUBSUB_EMULATOR_HOST is not set")?;
        let endpoint = format!("http://{host}");
        let tag = SystemTime::now().duration_since(UNIX_EPOCH)?.as_nanos();
        Ok(Self {
            prefix: format!("{scenario}-{tag:x}"),
            setup: Setup::connect(&endpoint).await?,
            subscriber: Subscriber::builder()
                .with_endpoint(&endpoint)
                .with_credentials(anonymous())
                .build()
                .await?,
            endpoint,
        })
    }

    pub fn topic_name(&self, suffix: &str) -> String {
        format!("projects/{PROJECT}/topics/{}-{suffix}", self.prefix)
    }

    pub fn subscription_name(&self, suffix: &str) -> String {
        format!("projects/{PROJECT}/subscriptions/{}-{suffix}", self.prefix)
    }

    /// Creates a topic; its name.
    pub async fn topic(&self, suffix: &str) -> Result<String> {
        let name = self.topic_name(suffix);
        self.setup.create_topic(name.clone()).await?;
        Ok(name)
    }

    /// Creates an ordered subscription with the default settings; its name.
    pub async fn subscription(&self, topic: &str, suffix: &str) -> Result<String> {
        let defaults = Subscription::default();
        Ok(self.subscription_with(topic, suffix, defaults).await?)
    }

    /// Creates an ordered subscription with these settings; its name.
    pub async fn subscription_with(
        &self,
        topic: &str,
        suffix: &str,
        settings: Subscription,
    ) -> std::result::Result<String, tonic::Status> {
        let name = self.subscription_name(suffix);
        let subscription = Subscription {
            name: name.clone(),
            topic: topic.to_owned(),
            enable_message_ordering: true,
            ..settings
        };
        self.setup.create_subscription(subscription).await?;
        Ok(name)
    }

    pub async fn publisher(&self, topic: &str) -> Result<Publisher> {
        Ok(Publisher::builder(topic)
            .with_endpoint(&self.endpoint)
            .with_credentials(anonymous())
            .build()
            .await?)
    }

    /// Publishes the numbers in order under one key; returns when all are accepted.
    pub async fn publish(
        &self,
        topic: &str,
        key: &str,
        numbers: impl IntoIterator<Item = u64>,
    ) -> Result<()> {
        let publisher = self.publisher(topic).await?;
        let accepted: Vec<_> = numbers
            .into_iter()
            .map(|number| publisher.publish(numbered(key, number)))
            .collect();
        for accepted in accepted {
            timeout(PATIENCE, accepted).await.context("publish")??;
        }
        Ok(())
    }
}

pub fn anonymous() -> Credentials {
    anonymous::Builder::new().build()
}

/// A message whose data is its number within its key.
pub fn numbered(key: &str, number: u64) -> Message {
    Message::new()
        .set_ordering_key(key)
        .set_data(number.to_string())
}

pub fn number(message: &Message) -> Result<u64> {
    let text = std::str::from_utf8(&message.data)?;
    text.parse().with_context(|| format!("number {text:?}"))
}

/// The next message of the stream.
pub async fn next(stream: &mut MessageStream) -> Result<(Message, Handler)> {
    let received = timeout(PATIENCE, stream.next())
        .await
        .with_context(|| format!("nothing came in {PATIENCE:?}"))?;
    Ok(received.context("the stream ended")??)
}

/// Ends the stream once the acks of its messages are sent.
pub async fn close(stream: MessageStream) -> Result<()> {
    timeout(PATIENCE, stream.shutdown_token().shutdown())
        .await
        .context("the stream does not shut down")
}

pub fn expect_equal<T: PartialEq<U> + Debug, U: Debug>(
    actual: T,
    expected: U,
    what: &str,
) -> Result<()> {
    ensure!(
        actual == expected,
        "{what}: {actual:?}, expected {expected:?}"
    );
    Ok(())
}

/// Checks that a call was refused with this code.
pub fn expect_code<T: Debug>(
    result: google_cloud_pubsub::Result<T>,
    code: Code,
    what: &str,
) -> Result<()> {
    match result {
        Ok(answer) => anyhow::bail!("{what} was not refused: {answer:?}"),
        Err(error) => {
            let actual = error.status().map(|status| status.code);
            ensure!(actual == Some(code), "{what}: {error}, expected {code:?}");
            Ok(())
        }
    }
}

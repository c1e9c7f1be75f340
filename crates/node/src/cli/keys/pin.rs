//! `orderly keys pin`.

use clap::Args;
use proto::admin::{Key, KeyPlace, PinKeyRequest};

use super::{Access, shard_name};
use crate::cli::output::note;
use crate::cli::{Failure, Target};

#[derive(Debug, Args)]
pub(super) struct Pin {
    /// The topic's id, or full name.
    topic: String,
    /// The ordering key.
    #[arg(value_name = "KEY")]
    ordering_key: String,
    /// The shard, as shard-7, or only its number.
    #[arg(long, required_unless_present = "region", conflicts_with = "region")]
    shard: Option<String>,
    /// Any shard of this region that fits the topic.
    #[arg(long)]
    region: Option<String>,
}

impl Pin {
    pub(super) async fn run(&self, access: &Access, target: &Target) -> Result<Key, Failure> {
        let request = PinKeyRequest {
            topic: target.topic(&self.topic)?,
            ordering_key: self.ordering_key.clone(),
            place: Some(KeyPlace {
                shard: self.shard.as_deref().map(shard_name).unwrap_or_default(),
                region: self.region.clone().unwrap_or_default(),
            }),
        };
        let mut client = access.client(target).await?;
        let pinned = client.pin_key(request).await?.into_inner();
        note(
            "publish to it soon: a pin of which nothing is stored goes again, after ten minutes at \
             the earliest",
        );
        Ok(pinned)
    }

    pub(super) fn ordering_key(&self) -> &str {
        &self.ordering_key
    }
}

//! `orderly keys move`.
//!
//! - `report`: what became of the keys, as it is printed.

mod report;

use std::collections::BTreeSet;
use std::io::Read;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use model::limits::MOVE_KEYS_MAX;
use proto::admin::admin_client::AdminClient;
use proto::admin::{KeyPlace, ListKeysRequest, MoveKeysRequest};
use tokio::time::Instant;
use tonic::transport::Channel;

use super::{Access, shard_name};
use crate::cli::output::Progress;
use crate::cli::{Failure, Format, Target};
use report::Report;

/// Where a list of keys is read from the standard input.
const INPUT: &str = "-";

#[derive(Debug, Args)]
#[command(group(clap::ArgGroup::new("which").required(true)))]
#[command(group(clap::ArgGroup::new("place").required(true)))]
pub(super) struct Move {
    /// The topic's id, or full name.
    topic: String,
    /// The ordering keys.
    #[arg(value_name = "KEY", group = "which")]
    ordering_keys: Vec<String>,
    /// A file with an ordering key on each line; - for the standard input.
    #[arg(long, value_name = "FILE", group = "which")]
    keys_from: Option<PathBuf>,
    /// All keys of the topic that are in this shard.
    #[arg(long, value_name = "SHARD", group = "which")]
    from_shard: Option<String>,
    /// The shard, as shard-7, or only its number.
    #[arg(long, value_name = "SHARD", group = "place")]
    to_shard: Option<String>,
    /// Any shard of this region that fits the topic; keys that are in one stay there.
    #[arg(long, value_name = "REGION", group = "place")]
    to_region: Option<String>,
    /// Seconds that all of it may take. What has not moved by then stays.
    #[arg(long, value_name = "SECONDS", default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    timeout: u64,
}

/// The keys of one call.
enum Keys {
    Named(Vec<String>),
    /// By hash, as they are listed.
    Hashed(Vec<String>),
}

impl Move {
    pub(super) async fn run(
        self,
        access: &Access,
        target: &Target,
        output: Format,
    ) -> Result<(), Failure> {
        let topic = target.topic(&self.topic)?;
        let named = self.named()?;
        let place = KeyPlace {
            shard: self.to_shard.as_deref().map(shard_name).unwrap_or_default(),
            region: self.to_region.clone().unwrap_or_default(),
        };
        let mut mover = Mover {
            client: access.client(target).await?,
            topic,
            place,
            give_up: Instant::now() + Duration::from_secs(self.timeout),
            progress: Progress::default(),
            report: Report::default(),
        };
        match &self.from_shard {
            Some(shard) => mover.shard(&shard_name(shard)).await?,
            None => mover.named(named).await?,
        }
        let Mover {
            progress, report, ..
        } = mover;
        drop(progress);
        match &self.ordering_keys[..] {
            [_] => report.print_only(output),
            _ => report.print(output),
        }
    }

    /// The keys that are named, each once, in their order.
    fn named(&self) -> Result<Vec<String>, Failure> {
        let mut keys = match &self.keys_from {
            Some(file) => read_keys(file)?,
            None => self.ordering_keys.clone(),
        };
        let mut seen = BTreeSet::new();
        keys.retain(|key| seen.insert(key.clone()));
        Ok(keys)
    }
}

fn read_keys(file: &PathBuf) -> Result<Vec<String>, Failure> {
    let mut text = String::new();
    let read = match file.as_os_str() == INPUT {
        true => std::io::stdin().read_to_string(&mut text).map(drop),
        false => std::fs::read_to_string(file).map(|read| text = read),
    };
    read.map_err(|why| {
        Failure::Usage(format!(
            "the keys can't be read from {}: {why}",
            file.display()
        ))
    })?;
    let keys = text.lines().filter(|line| !line.is_empty());
    let keys: Vec<String> = keys.map(str::to_owned).collect();
    match keys.is_empty() {
        true => Err(Failure::Usage(format!(
            "{} has no key: it takes one on each line",
            file.display()
        ))),
        false => Ok(keys),
    }
}

/// Moves keys, as many in one call as may be.
struct Mover {
    client: AdminClient<Channel>,
    topic: String,
    place: KeyPlace,
    give_up: Instant,
    progress: Progress,
    report: Report,
}

impl Mover {
    async fn named(&mut self, keys: Vec<String>) -> Result<(), Failure> {
        self.report.expect(keys.len());
        for keys in keys.chunks(MOVE_KEYS_MAX) {
            self.call(Keys::Named(keys.to_vec())).await?;
        }
        Ok(())
    }

    /// All keys of a shard, page by page.
    async fn shard(&mut self, shard: &str) -> Result<(), Failure> {
        let mut request = ListKeysRequest {
            topic: self.topic.clone(),
            shard: shard.to_owned(),
            page_size: MOVE_KEYS_MAX as u32,
            ..ListKeysRequest::default()
        };
        loop {
            let page = self.client.list_keys(request.clone()).await?.into_inner();
            let keys: Vec<String> = page.keys.into_iter().map(|key| key.hash).collect();
            if !keys.is_empty() {
                self.report.expect(keys.len());
                self.call(Keys::Hashed(keys)).await?;
            }
            request.page_token = page.next_page_token;
            if request.page_token.is_empty() {
                return Ok(());
            }
        }
    }

    async fn call(&mut self, keys: Keys) -> Result<(), Failure> {
        let left = self.give_up.saturating_duration_since(Instant::now());
        let mut request = MoveKeysRequest {
            topic: self.topic.clone(),
            place: Some(self.place.clone()),
            // Zero would be as long as the node likes.
            timeout_ms: u64::try_from(left.as_millis()).unwrap_or(u64::MAX).max(1),
            ..MoveKeysRequest::default()
        };
        let names = match keys {
            Keys::Named(names) => {
                request.ordering_keys.clone_from(&names);
                names
            }
            Keys::Hashed(hashes) => {
                request.hashes.clone_from(&hashes);
                hashes
            }
        };
        let mut moves = self.client.move_keys(request).await?.into_inner();
        while let Some(done) = moves.message().await? {
            let name = names.get(done.number as usize).cloned();
            self.report.add(name.unwrap_or_default(), done);
            if self.report.is_of_many() {
                self.progress.say(&self.report.progress());
            }
        }
        Ok(())
    }
}

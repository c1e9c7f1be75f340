//! `orderly keys`.
//!
//! - `pin`, `moves`: keys go where an operator wants them.

mod moves;
mod pin;

use clap::{Args, Subcommand};
use proto::admin::{Key, ListKeysRequest, LocateKeyRequest};
use serde_json::{Value, json};

use super::access::Access;
use super::output::{Show, print_one, print_rows};
use super::{Failure, Format, Target};

/// Keys of one call.
const PAGE_KEYS: u32 = 1_000;

#[derive(Debug, Args)]
pub(crate) struct Keys {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Says which shard has the messages of an ordering key.
    Where {
        /// The topic's id, or full name.
        topic: String,
        /// The ordering key.
        #[arg(value_name = "KEY")]
        ordering_key: String,
    },
    /// Lists the ordering keys that are pinned to a shard, by their hashes.
    List(List),
    /// Pins an ordering key that is not pinned yet: its first publish then goes there.
    Pin(pin::Pin),
    /// Moves ordering keys while they are published and consumed, and returns when they are there.
    Move(moves::Move),
}

#[derive(Debug, Args)]
struct List {
    /// Only those of this topic.
    #[arg(long)]
    topic: Option<String>,
    /// Only those of this shard, as shard-7.
    #[arg(long)]
    shard: Option<String>,
    /// Only those of shards that are at home in this region.
    #[arg(long)]
    region: Option<String>,
    /// How many at most.
    #[arg(long, default_value_t = 1_000)]
    limit: usize,
}

impl Keys {
    pub(crate) async fn run(
        self,
        target: &Target,
        access: &Access,
        output: Format,
    ) -> Result<(), Failure> {
        match self.verb {
            Verb::Where {
                topic,
                ordering_key: key,
            } => {
                let request = LocateKeyRequest {
                    topic: target.topic(&topic)?,
                    ordering_key: key.clone(),
                };
                let mut client = access.client(target).await?;
                let located = client.locate_key(request).await?.into_inner();
                let Some(found) = located.key else {
                    return Err(Failure::NotFound(format!(
                        "key \"{key}\" is not pinned: nothing of it is stored, and its next \
                         publish pins it to the region of the publisher"
                    )));
                };
                let leader = located.leader;
                print_one(output, &Located { key, found, leader });
            }
            Verb::Pin(pin) => {
                let found = pin.run(access, target).await?;
                let key = pin.ordering_key().to_owned();
                let leader = String::new();
                print_one(output, &Located { key, found, leader });
            }
            Verb::Move(moves) => moves.run(access, target, output).await?,
            Verb::List(list) => {
                let keys = list.run(access, target).await?;
                print_rows(output, &keys);
            }
        }
        Ok(())
    }
}

impl List {
    async fn run(self, access: &Access, target: &Target) -> Result<Vec<Key>, Failure> {
        let topic = self.topic.map(|topic| target.topic(&topic)).transpose()?;
        let mut request = ListKeysRequest {
            topic: topic.unwrap_or_default(),
            shard: self.shard.as_deref().map(shard_name).unwrap_or_default(),
            region: self.region.unwrap_or_default(),
            page_size: PAGE_KEYS,
            page_token: String::new(),
        };
        let mut client = access.client(target).await?;
        let mut keys = Vec::new();
        loop {
            let page = client.list_keys(request.clone()).await?.into_inner();
            keys.extend(page.keys);
            request.page_token = page.next_page_token;
            if request.page_token.is_empty() || keys.len() >= self.limit {
                keys.truncate(self.limit);
                return Ok(keys);
            }
        }
    }
}

/// A shard as it is called, of whom only the number may have been typed.
fn shard_name(typed: &str) -> String {
    match typed.parse::<u32>() {
        Ok(number) => format!("shard-{number}"),
        Err(_) => typed.to_owned(),
    }
}

fn or_dash(text: &str) -> String {
    match text {
        "" => "-".to_owned(),
        text => text.to_owned(),
    }
}

impl Show for Key {
    const COLUMNS: &'static [&'static str] = &["TOPIC", "HASH", "SHARD", "REGION", "EPOCH"];

    fn cells(&self) -> Vec<String> {
        vec![
            or_dash(&self.topic),
            self.hash.clone(),
            self.shard.clone(),
            or_dash(&self.region),
            self.epoch.to_string(),
        ]
    }

    fn json(&self) -> Value {
        json!({
            "topic": self.topic,
            "hash": self.hash,
            "shard": self.shard,
            "region": self.region,
            "epoch": self.epoch,
        })
    }
}

/// A key that was looked for by its name.
struct Located {
    key: String,
    found: Key,
    leader: String,
}

impl Show for Located {
    const COLUMNS: &'static [&'static str] =
        &["KEY", "TOPIC", "HASH", "SHARD", "REGION", "EPOCH", "LEADER"];

    fn cells(&self) -> Vec<String> {
        let mut cells = vec![self.key.clone()];
        cells.extend(self.found.cells());
        cells.push(or_dash(&self.leader));
        cells
    }

    fn json(&self) -> Value {
        let mut json = self.found.json();
        json["key"] = self.key.clone().into();
        json["leader"] = self.leader.clone().into();
        json
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use crate::cli::Cli;

    #[test]
    fn a_key_is_no_private_key() {
        for verb in ["where", "pin --shard 1", "move --to-shard 1"] {
            let typed = format!("orderly keys {verb} orders k --key a --ca b --certificate c");
            assert!(Cli::try_parse_from(typed.split(' ')).is_ok(), "{typed}");
        }
    }

    #[test]
    fn a_move_says_which_keys_and_where_to() {
        let parses = |typed: &str| {
            let typed = format!("orderly keys move orders {typed}");
            Cli::try_parse_from(typed.split(' ')).is_ok()
        };
        assert!(parses("a b c --to-region eu"));
        assert!(parses("--keys-from keys.txt --to-shard shard-3"));
        assert!(parses("--from-shard 2 --to-region eu --timeout 5"));
        for odd in [
            "a",
            "--to-shard 3",
            "a --to-shard 3 --to-region eu",
            "a --keys-from keys.txt --to-shard 3",
            "--from-shard 2 --keys-from keys.txt --to-shard 3",
            "a --to-shard 3 --timeout 0",
        ] {
            assert!(!parses(odd), "{odd}");
        }
    }
}

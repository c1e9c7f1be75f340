//! What stands in the log.
//!
//! A [`Proposal`] is one entry: commands that wait together are proposed together. Its payloads
//! are stored beside the entry, once, so its encoding comes in two parts.

use model::Timestamp;
use model::run::RunPayload;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::{control, registry, shard};

/// The format of every entry written by this program.
const FORMAT: u8 = 1;

/// One entry of a group's log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Proposal {
    /// The leader's stamp. Apply takes time from here and never lets it go back.
    pub at: Timestamp,
    /// Applied in order, each whole or not at all.
    pub commands: Vec<Command>,
}

/// A command of one kind of group.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Command {
    /// For the control group.
    Control(control::Command),
    /// For a shard.
    Shard(shard::Command),
    /// For a registry group.
    Registry(registry::Command),
}

/// What a command answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// From the control group.
    Control(control::Outcome),
    /// From a shard.
    Shard(shard::Outcome),
    /// From a registry group, to which nothing follows but the answer.
    Registry(registry::Reply),
}

/// The bytes of an entry are not one of this program's formats.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("log entry of {bytes} bytes is malformed")]
pub struct MalformedProposal {
    bytes: usize,
}

impl Proposal {
    /// The entry without its payloads.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        postcard::to_extend(self, vec![FORMAT]).expect("commands are plain data, which encodes")
    }

    /// The payloads of the entry, in the order of [`crate::table::run::PayloadAt::number`].
    pub fn payloads(&self) -> impl Iterator<Item = &RunPayload> {
        self.commands.iter().flat_map(|command| match command {
            Command::Shard(command) => command.payloads(),
            _ => &[],
        })
    }

    /// Reads what [`Proposal::encode`] wrote. The payloads are empty: applying needs none of them.
    ///
    /// # Errors
    /// [`MalformedProposal`] for other bytes.
    pub fn decode(bytes: &[u8]) -> Result<Self, MalformedProposal> {
        let malformed = MalformedProposal { bytes: bytes.len() };
        match bytes.split_first() {
            Some((&FORMAT, rest)) => match postcard::take_from_bytes(rest) {
                Ok((proposal, [])) => Ok(proposal),
                _ => Err(malformed),
            },
            _ => Err(malformed),
        }
    }

    /// Puts the payloads back that [`Proposal::encode`] left out, for a replica that lacks them.
    ///
    /// # Panics
    /// When there are not as many as the entry's commands have.
    pub fn attach_payloads(&mut self, payloads: impl IntoIterator<Item = RunPayload>) {
        let mut payloads = payloads.into_iter();
        for command in &mut self.commands {
            if let Command::Shard(command) = command {
                command.attach_payloads(&mut payloads);
            }
        }
        assert!(
            payloads.next().is_none(),
            "more payloads than commands want"
        );
    }
}

//! The commands of the control group and their answers.

use model::ClusterSecret;
use serde::{Deserialize, Serialize};

/// A command in the control group's log. One struct each.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Command {
    /// Founds the cluster.
    Found(Found),
}

/// Founds the cluster: the first entry of its log, and never a later one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Found {
    /// The key of the cluster's hashes.
    pub secret: ClusterSecret,
    /// How many shards there are, numbered from one.
    pub shards: u16,
}

/// The answer to a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The command is done.
    Done,
}

//! A topic, by name.

use std::collections::{BTreeMap, BTreeSet};

use model::{Incarnation, RegionName, TopicName};
use serde::{Deserialize, Serialize};

use super::NameKey;
use crate::table::Row;

/// What users attach to a resource, by key.
pub type Labels = BTreeMap<String, String>;

/// A topic as the catalogue has it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Topic {
    /// Its name.
    pub name: TopicName,
    /// Which life of the name this is.
    pub incarnation: Incarnation,
    /// Which command changed it last; grows with each.
    pub version: u64,
    /// Its labels.
    pub labels: Labels,
    /// How many subscriptions it has, detached ones included.
    pub subscriptions: u32,
    /// Where its messages may be; `None` is anywhere.
    pub storage_policy: Option<StoragePolicy>,
}

/// Where the messages of a topic may be. A change counts for messages published after it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoragePolicy {
    /// The regions in which they may be stored; at least one.
    pub allowed: BTreeSet<RegionName>,
    /// Whether they may not even pass through others: nobody publishes or receives there.
    pub enforce_in_transit: bool,
}

impl StoragePolicy {
    /// The regions, as people read them.
    #[must_use]
    pub fn names(&self) -> String {
        let names: Vec<&str> = self.allowed.iter().map(RegionName::as_str).collect();
        names.join(", ")
    }
}

impl Row for Topic {
    const TABLE: u8 = 65;
    type Key = NameKey;
}

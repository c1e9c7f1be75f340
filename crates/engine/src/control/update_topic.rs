//! A topic changes.

use std::collections::BTreeSet;

use model::{RegionName, TopicName};
use serde::{Deserialize, Serialize};

use super::rejected::Stop;
use super::table::NameKey;
use super::{At, Labels, Outcome, Rejected, Reply, StoragePolicy, Topic, survival};
use crate::kv::{Overlay, ViewExt};

/// Changes a topic.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UpdateTopic {
    /// Its name.
    pub name: TopicName,
    /// Its new labels, in place of the old ones.
    pub labels: Option<Labels>,
    /// How its storage policy changes.
    pub storage_policy: Option<StoragePolicyChange>,
}

/// How a storage policy changes: as a whole, or in the parts that a mask names.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum StoragePolicyChange {
    /// There is this policy, or none.
    Whole(Option<StoragePolicy>),
    /// Of the policy, these parts change. A topic without one gets it with its regions.
    Parts {
        /// The regions in which messages may be stored.
        allowed: Option<BTreeSet<RegionName>>,
        /// Whether they may not even pass through others.
        enforce_in_transit: Option<bool>,
    },
}

impl UpdateTopic {
    pub(super) fn apply(&self, overlay: &mut Overlay<'_>, at: At) -> Result<Outcome, Stop> {
        let key = NameKey::from(&self.name);
        let Some(mut topic) = overlay.row::<Topic>(&key)? else {
            return Err(Rejected::TopicNotFound(self.name.clone()).into());
        };
        let old_goal = topic.survival_goal();
        if let Some(labels) = &self.labels {
            topic.labels = labels.clone();
        }
        if let Some(change) = &self.storage_policy {
            topic.storage_policy = change.applied(&topic)?;
        }
        // Whoever changes something else is not told what the cluster can't give any more.
        if self.storage_policy.is_some() || topic.survival_goal() != old_goal {
            survival::check(overlay, &topic)?;
        }
        topic.version = at.number();
        overlay.put(&key, &topic);
        Ok(Outcome::only(Reply::Topic(Box::new(topic))))
    }
}

impl StoragePolicyChange {
    /// The topic's policy after the change.
    fn applied(&self, topic: &Topic) -> Result<Option<StoragePolicy>, Rejected> {
        let (allowed, enforce_in_transit) = match self {
            StoragePolicyChange::Whole(policy) => return Ok(policy.clone()),
            StoragePolicyChange::Parts {
                allowed,
                enforce_in_transit,
            } => (allowed, enforce_in_transit),
        };
        let old = topic.storage_policy.as_ref();
        let allowed = allowed.as_ref().or(old.map(|policy| &policy.allowed));
        let Some(allowed) = allowed else {
            return Err(Rejected::NoStoragePolicy(topic.name.clone()));
        };
        let was_enforced = old.is_some_and(|policy| policy.enforce_in_transit);
        Ok(Some(StoragePolicy {
            allowed: allowed.clone(),
            enforce_in_transit: enforce_in_transit.unwrap_or(was_enforced),
        }))
    }
}

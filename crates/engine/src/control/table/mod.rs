//! The rows of the control group. Their tables are numbered from 64; see [`crate::table`].
//!
//! In sort order: [`cluster`], [`topic`], [`subscription`], [`topic_subscription`], [`project`],
//! [`region`], [`node`], [`placement`], [`awake_node`], [`changes`],
//! [`mod@format`].
//! Keys with names differ in length, so [`crate::kv::View::floor`] is of no use here.

pub mod awake_node;
pub mod changes;
pub mod cluster;
pub mod format;
pub mod node;
pub mod placement;
pub mod project;
pub mod region;
pub mod subscription;
pub mod topic;
pub mod topic_subscription;

use model::{ProjectId, RegionName, SubscriptionName, TopicName};

use crate::table::RowKey;

/// The key of a row that is found by a name: the text of the name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct NameKey(String);

impl NameKey {
    /// The bounds of all names that begin with `prefix`, which ends with a slash.
    pub(super) fn below(prefix: &str) -> (NameKey, NameKey) {
        let parent = prefix
            .strip_suffix('/')
            .expect("the prefix ends with a slash");
        // In ASCII, zero is what comes after the slash.
        (NameKey(prefix.to_owned()), NameKey(format!("{parent}0")))
    }

    /// The bounds of all names: none has a character beyond ASCII.
    pub(super) fn all() -> (NameKey, NameKey) {
        (NameKey(String::new()), NameKey("\u{80}".to_owned()))
    }

    /// The first key after `name`.
    pub(super) fn after(name: &str) -> NameKey {
        NameKey(format!("{name}\0"))
    }
}

impl From<&TopicName> for NameKey {
    fn from(name: &TopicName) -> Self {
        NameKey(name.as_str().to_owned())
    }
}

impl From<&SubscriptionName> for NameKey {
    fn from(name: &SubscriptionName) -> Self {
        NameKey(name.as_str().to_owned())
    }
}

impl From<&ProjectId> for NameKey {
    fn from(project: &ProjectId) -> Self {
        NameKey(project.as_str().to_owned())
    }
}

impl From<&RegionName> for NameKey {
    fn from(region: &RegionName) -> Self {
        NameKey(region.as_str().to_owned())
    }
}

impl RowKey for NameKey {
    fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.0.as_bytes());
    }

    fn read(bytes: &[u8]) -> Option<Self> {
        String::from_utf8(bytes.to_vec()).ok().map(NameKey)
    }
}

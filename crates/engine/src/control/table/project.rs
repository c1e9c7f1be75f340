//! How many resources a project has, for its quotas.

use model::ProjectId;
use serde::{Deserialize, Serialize};

use super::NameKey;
use crate::Fault;
use crate::kv::{Overlay, View, ViewExt};
use crate::table::Row;

/// The counts of one project. A project without any resource has no row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Project {
    /// Its topics.
    pub topics: u32,
    /// Its subscriptions, whatever project their topic is in.
    pub subscriptions: u32,
}

impl Row for Project {
    const TABLE: u8 = 68;
    type Key = NameKey;
}

impl Project {
    /// The counts of `project`.
    pub(in crate::control) fn read(view: &dyn View, project: &ProjectId) -> Result<Self, Fault> {
        Ok(view.row(&NameKey::from(project))?.unwrap_or_default())
    }

    /// Writes the counts of `project`.
    pub(in crate::control) fn write(self, overlay: &mut Overlay<'_>, project: &ProjectId) {
        let key = NameKey::from(project);
        match self == Project::default() {
            true => overlay.delete::<Project>(&key),
            false => overlay.put(&key, &self),
        }
    }
}

//! A topic begins.

use model::TopicName;
use model::limits::RESOURCES_PER_PROJECT_MAX;
use serde::{Deserialize, Serialize};

use super::rejected::Stop;
use super::table::NameKey;
use super::table::project::Project;
use super::{At, Labels, Outcome, Quota, Rejected, Reply, StoragePolicy, Topic, survival};
use crate::kv::{Overlay, ViewExt};

/// Creates a topic under a free name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CreateTopic {
    /// Its name.
    pub name: TopicName,
    /// Its labels.
    pub labels: Labels,
    /// Where its messages may be; `None` is anywhere.
    pub storage_policy: Option<StoragePolicy>,
}

impl CreateTopic {
    pub(super) fn apply(&self, overlay: &mut Overlay<'_>, at: At) -> Result<Outcome, Stop> {
        let key = NameKey::from(&self.name);
        if overlay.row::<Topic>(&key)?.is_some() {
            return Err(Rejected::TopicExists(self.name.clone()).into());
        }
        let mut project = Project::read(overlay, &self.name.project())?;
        if project.topics as usize >= RESOURCES_PER_PROJECT_MAX {
            let quota = Quota::TopicsOfProject(self.name.project());
            return Err(Rejected::QuotaExceeded(quota).into());
        }

        let topic = Topic {
            name: self.name.clone(),
            incarnation: at.incarnation(),
            version: at.number(),
            labels: self.labels.clone(),
            subscriptions: 0,
            storage_policy: self.storage_policy.clone(),
        };
        survival::check(overlay, &topic)?;
        overlay.put(&key, &topic);
        project.topics += 1;
        project.write(overlay, &self.name.project());
        Ok(Outcome::only(Reply::Topic(Box::new(topic))))
    }
}

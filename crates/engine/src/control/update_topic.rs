//! A topic changes.

use model::TopicName;
use serde::{Deserialize, Serialize};

use super::rejected::Stop;
use super::table::NameKey;
use super::{At, Labels, Outcome, Rejected, Reply, Topic};
use crate::kv::{Overlay, ViewExt};

/// Changes a topic.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UpdateTopic {
    /// Its name.
    pub name: TopicName,
    /// Its new labels, in place of the old ones.
    pub labels: Option<Labels>,
}

impl UpdateTopic {
    pub(super) fn apply(&self, overlay: &mut Overlay<'_>, at: At) -> Result<Outcome, Stop> {
        let key = NameKey::from(&self.name);
        let Some(mut topic) = overlay.row::<Topic>(&key)? else {
            return Err(Rejected::TopicNotFound(self.name.clone()).into());
        };
        if let Some(labels) = &self.labels {
            topic.labels = labels.clone();
        }
        topic.version = at.number();
        overlay.put(&key, &topic);
        Ok(Outcome::only(Reply::Topic(Box::new(topic))))
    }
}

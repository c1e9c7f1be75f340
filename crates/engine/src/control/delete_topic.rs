//! A topic ends; its subscriptions and their backlogs stay.

use model::TopicName;
use serde::{Deserialize, Serialize};

use super::rejected::Stop;
use super::table::NameKey;
use super::table::project::Project;
use super::table::topic_subscription::{TopicSubscription, TopicSubscriptionKey};
use super::{At, Outcome, Rejected, Reply, Topic, read};
use crate::Fault;
use crate::kv::{Overlay, ViewExt};
use crate::shard::{self, CloseTopic};

/// Deletes a topic. That it serves as some subscription's dead-letter topic does not hinder: such
/// a subscription goes on to redeliver.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeleteTopic {
    /// Its name.
    pub name: TopicName,
}

impl DeleteTopic {
    pub(super) fn apply(&self, overlay: &mut Overlay<'_>, at: At) -> Result<Outcome, Stop> {
        let key = NameKey::from(&self.name);
        let Some(topic) = overlay.row::<Topic>(&key)? else {
            return Err(Rejected::TopicNotFound(self.name.clone()).into());
        };
        if !model::sabotage!("deleted-topic-keeps-its-name") {
            orphan_subscriptions(overlay, &topic, at)?;
        }
        overlay.delete::<Topic>(&key);
        let mut project = Project::read(overlay, &self.name.project())?;
        project.topics -= 1;
        project.write(overlay, &self.name.project());
        let close = CloseTopic {
            topic: topic.incarnation,
        };
        Ok(Outcome {
            reply: Reply::Done,
            effects: vec![shard::Command::CloseTopic(close)],
        })
    }
}

/// Takes the topic's name from its subscriptions, so that no later topic of that name is taken
/// for theirs.
fn orphan_subscriptions(overlay: &mut Overlay<'_>, topic: &Topic, at: At) -> Result<(), Fault> {
    let (from, to) = TopicSubscriptionKey::after(topic.incarnation, "");
    let names: Vec<_> = overlay
        .rows::<TopicSubscription>(&from, &to)
        .map(|row| Ok(row?.1.name))
        .collect::<Result<_, Fault>>()?;
    for name in names {
        let mut subscription = read::indexed(overlay, &name)?;
        subscription.topic_name = None;
        subscription.version = at.number();
        overlay.put(&NameKey::from(&name), &subscription);
    }
    Ok(())
}

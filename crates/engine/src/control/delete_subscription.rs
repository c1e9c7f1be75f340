//! A subscription ends, and its backlog with it.

use model::SubscriptionName;
use serde::{Deserialize, Serialize};

use super::rejected::Stop;
use super::table::NameKey;
use super::table::project::Project;
use super::table::topic_subscription::{TopicSubscription, TopicSubscriptionKey};
use super::{Outcome, Rejected, Reply, Subscription, Topic};
use crate::Fault;
use crate::kv::{Overlay, ViewExt};
use crate::shard;

/// Deletes a subscription. Its name is free at once, for a subscription that knows nothing of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeleteSubscription {
    /// Its name.
    pub name: SubscriptionName,
}

impl DeleteSubscription {
    pub(super) fn apply(&self, overlay: &mut Overlay<'_>) -> Result<Outcome, Stop> {
        let key = NameKey::from(&self.name);
        let Some(subscription) = overlay.row::<Subscription>(&key)? else {
            return Err(Rejected::SubscriptionNotFound(self.name.clone()).into());
        };
        overlay.delete::<Subscription>(&key);
        let entry = TopicSubscriptionKey::new(subscription.topic, &self.name);
        overlay.delete::<TopicSubscription>(&entry);
        uncount(overlay, &subscription)?;
        Ok(Outcome {
            reply: Reply::Done,
            effects: vec![shard::Command::Detach(subscription.detach())],
        })
    }
}

fn uncount(overlay: &mut Overlay<'_>, subscription: &Subscription) -> Result<(), Fault> {
    let project_id = subscription.name.project();
    let mut project = Project::read(overlay, &project_id)?;
    project.subscriptions -= 1;
    project.write(overlay, &project_id);
    if let Some(name) = &subscription.topic_name {
        let key = NameKey::from(name);
        let topic: Option<Topic> = overlay.row(&key)?;
        // A deleted topic has taken its name from its subscriptions, so this one is there.
        let mut topic = topic.ok_or_else(|| Fault::Missing(format!("topic {name}")))?;
        topic.subscriptions -= 1;
        overlay.put(&key, &topic);
    }
    Ok(())
}

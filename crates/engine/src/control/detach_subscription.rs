//! A subscription is cut off from its topic, for ever.

use model::SubscriptionName;
use serde::{Deserialize, Serialize};

use super::rejected::Stop;
use super::table::NameKey;
use super::table::topic_subscription::{TopicSubscription, TopicSubscriptionKey};
use super::{At, Outcome, Rejected, Reply, Subscription};
use crate::kv::{Overlay, ViewExt};
use crate::shard;

/// Detaches a subscription: it stays, but its backlog goes and nothing is delivered any more.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DetachSubscription {
    /// Its name.
    pub name: SubscriptionName,
}

impl DetachSubscription {
    pub(super) fn apply(&self, overlay: &mut Overlay<'_>, at: At) -> Result<Outcome, Stop> {
        let key = NameKey::from(&self.name);
        let Some(mut subscription) = overlay.row::<Subscription>(&key)? else {
            return Err(Rejected::SubscriptionNotFound(self.name.clone()).into());
        };
        // To repeat it is fine. Shards are told again then too: the first answer may have been
        // lost before they knew, and the second one promises the same.
        subscription.detached = true;
        subscription.version = at.number();
        overlay.put(&key, &subscription);
        let entry = TopicSubscription {
            name: self.name.clone(),
            detached: true,
        };
        overlay.put(
            &TopicSubscriptionKey::new(subscription.topic, &self.name),
            &entry,
        );
        Ok(Outcome {
            reply: Reply::Done,
            effects: vec![shard::Command::Detach(subscription.detach())],
        })
    }
}

//! Names become incarnations, by this node's copy of the catalogue.

use engine::Fault;
use engine::control::{NodeState, Subscription, Topic, read};
use engine::route::NotInTransit;
use model::{Incarnation, SubscriptionName, TopicName};
use replica::{LookError, StateView};
use thiserror::Error;

use crate::{PublishError, Router, Unavailable};

/// A subscription can't be used.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ResolveError {
    /// There is no such subscription.
    #[error("Resource not found (resource={}).", .0.id())]
    NotFound(SubscriptionName),
    /// It was detached from its topic, for ever.
    #[error("Subscription {0} is detached from its topic: delete it and create another.")]
    Detached(SubscriptionName),
    /// The topic's messages must not pass through this region.
    #[error(transparent)]
    NotInTransit(#[from] NotInTransit),
    /// *Retry*, elsewhere: an operator is about to stop this node.
    #[error("this node is being drained: connect to another")]
    Draining,
    /// *Retry*: a session ended, and the subscription is as it was.
    #[error("the session of subscription {0} ended")]
    Ended(SubscriptionName),
    /// *Retry*: this node does not know whether what it knows is current.
    #[error(transparent)]
    Unavailable(#[from] Unavailable),
    /// The catalogue can't be read.
    #[error(transparent)]
    Fault(#[from] Fault),
}

impl From<LookError> for ResolveError {
    fn from(why: LookError) -> Self {
        match why {
            LookError::Unavailable(why) => why.into(),
            LookError::Fault(fault) => fault.into(),
        }
    }
}

impl Router {
    /// The topic as it is now, if there is one.
    ///
    /// # Errors
    /// [`PublishError`] when the catalogue can't be read, or may be out of date.
    pub(crate) async fn topic(&self, name: &TopicName) -> Result<Option<Topic>, PublishError> {
        let look = |catalogue: &StateView| read::living_topic(catalogue, name);
        Ok(self.control().resolve(look).await?)
    }

    /// The subscription, if it can be pulled from.
    ///
    /// # Errors
    /// [`ResolveError`].
    pub async fn subscription(
        &self,
        name: &SubscriptionName,
    ) -> Result<Subscription, ResolveError> {
        let look = |catalogue: &StateView| read::living_subscription(catalogue, name);
        match self.control().resolve(look).await? {
            None => Err(ResolveError::NotFound(name.clone())),
            Some(found) if found.detached => Err(ResolveError::Detached(name.clone())),
            Some(found) => Ok(found),
        }
    }

    /// Whether this node takes new sessions.
    ///
    /// # Errors
    /// [`ResolveError::Draining`] when an operator has brought it to rest.
    pub(crate) fn admit_session(&self) -> Result<(), ResolveError> {
        match read::node(self.control().current()?, self.inner.node)? {
            Some(node) if node.state == NodeState::Draining => Err(ResolveError::Draining),
            _ => Ok(()),
        }
    }

    /// Whether this life of the subscription is there and attached, as far as this node knows:
    /// others may not know yet that it is not.
    pub(crate) fn is_attached(&self, name: &SubscriptionName, incarnation: Incarnation) -> bool {
        let Ok(catalogue) = self.control().current() else {
            return true;
        };
        let found = read::subscription(catalogue, name);
        found.is_ok_and(|found| {
            found.is_some_and(|found| !found.detached && found.incarnation == incarnation)
        })
    }

    /// Whether the subscription can be pulled from through this node.
    ///
    /// # Errors
    /// [`ResolveError::NotInTransit`] where the storage policy of its topic forbids it.
    pub(crate) fn admit_pull(&self, subscription: &Subscription) -> Result<(), ResolveError> {
        if let Some(topic) = &subscription.topic_name
            && let Some(topic) = read::topic(self.control().current()?, topic)?
        {
            self.admit(&topic)??;
        }
        Ok(())
    }

    /// Whether the messages of a subscription must not pass through this node any more, as far as
    /// it knows.
    pub(crate) fn keeps_out(&self, name: &SubscriptionName) -> bool {
        let Ok(catalogue) = self.control().current() else {
            return false;
        };
        let Ok(Some(found)) = read::subscription(catalogue, name) else {
            return false;
        };
        matches!(self.admit_pull(&found), Err(ResolveError::NotInTransit(_)))
    }

    /// Why a session of the subscription ended: it is gone, its messages must not pass through here
    /// any more, or it should be opened again.
    pub async fn why_ended(&self, name: &SubscriptionName) -> ResolveError {
        let found = self.subscription(name).await;
        match found.and_then(|found| self.admit_pull(&found)) {
            Err(why) => why,
            Ok(()) => ResolveError::Ended(name.clone()),
        }
    }
}

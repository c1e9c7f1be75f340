//! Names become incarnations, by this node's copy of the catalogue.

use engine::Fault;
use engine::control::{NodeState, Subscription, Topic, read};
use engine::route::NotInTransit;
use model::{SubscriptionName, TopicName};
use thiserror::Error;

use crate::{PublishError, Router, ShardError, Unavailable};

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

impl Router {
    /// The topic as it is now, if there is one.
    ///
    /// # Errors
    /// [`PublishError`] when the catalogue can't be read, or may be out of date.
    pub(crate) fn topic(&self, name: &TopicName) -> Result<Option<Topic>, PublishError> {
        let catalogue = self.control().current().map_err(ShardError::Unavailable)?;
        Ok(read::topic(catalogue, name)?)
    }

    /// The subscription, if it can be pulled from.
    ///
    /// # Errors
    /// [`ResolveError`].
    pub fn subscription(&self, name: &SubscriptionName) -> Result<Subscription, ResolveError> {
        match read::subscription(self.control().current()?, name)? {
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

    /// Why a session of the subscription ended: it is gone, or it should be opened again.
    #[must_use]
    pub fn why_ended(&self, name: &SubscriptionName) -> ResolveError {
        self.subscription(name)
            .err()
            .unwrap_or_else(|| ResolveError::Ended(name.clone()))
    }
}

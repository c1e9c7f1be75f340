//! What a client asks for, in words of ours, and how it becomes a command.
//!
//! All that can be judged without knowing the catalogue is judged here, once for every kind of
//! frontend. Each request has the fields of its message on the wire. Fields that only a later
//! release serves are there too, so that they are refused by name and never silently dropped.

mod mask;
mod subscription;
mod topic;
mod value;

use model::name::InvalidName;
use thiserror::Error;

pub use mask::InvalidMask;
pub use subscription::{DeadLetterRequest, RetryRequest, SubscriptionRequest};
pub use topic::{StoragePolicyRequest, TopicRequest};
pub use value::{InvalidValue, SignedDuration};

use crate::filter::InvalidFilter;

/// A request can't become a command. It is *refused*: nothing was done.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum InvalidRequest {
    /// A name does not follow the grammar.
    #[error(transparent)]
    Name(#[from] InvalidName),
    /// The update mask names what can't be updated.
    #[error(transparent)]
    Mask(#[from] InvalidMask),
    /// A value is out of bounds.
    #[error(transparent)]
    Value(#[from] InvalidValue),
    /// The filter can't be read.
    #[error(transparent)]
    Filter(#[from] InvalidFilter),
    /// The request is right, but this release does not serve it.
    #[error(transparent)]
    NotSupported(#[from] NotSupported),
}

/// A field asks for what only a later release does.
///
/// On the wire this is UNIMPLEMENTED, not INVALID_ARGUMENT: the client did nothing wrong by the
/// rules of the API, and no client retries that code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("{field} of a {resource} is not supported yet")]
pub struct NotSupported {
    /// The kind of resource: topic or subscription.
    pub resource: &'static str,
    /// The field, as its message on the wire calls it.
    pub field: &'static str,
}

#[cfg(test)]
mod tests;

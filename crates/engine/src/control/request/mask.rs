//! Update masks: which fields of a resource an update sets.

use std::collections::BTreeSet;

use thiserror::Error;

/// An update mask names what can't be updated. The texts are those that clients know.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum InvalidMask {
    /// There is no mask, or it names nothing.
    #[error(
        "The update_mask in the Update{resource}Request must be set, and must contain a \
         non-empty paths list."
    )]
    Empty {
        /// The message of the resource: Topic or Subscription.
        resource: &'static str,
    },
    /// The field never changes, or is not a client's to set. Also when the value is the old one.
    #[error(
        "Invalid update_mask provided in the Update{resource}Request: the '{path}' field in the \
         {resource} is not mutable."
    )]
    NotMutable {
        /// The message of the resource: Topic or Subscription.
        resource: &'static str,
        /// The path.
        path: String,
    },
    /// There is no such field.
    #[error(
        "Invalid update_mask provided in the Update{resource}Request: the {resource} has no field \
         '{path}'."
    )]
    Unknown {
        /// The message of the resource: Topic or Subscription.
        resource: &'static str,
        /// The path.
        path: String,
    },
}

/// What a path of a mask names.
pub(super) enum Path<F> {
    Mutable(F),
    Immutable,
    Unknown,
}

/// The fields that a mask names, each once, in the order of `F`.
pub(super) fn fields<F: Ord>(
    resource: &'static str,
    mask: &[String],
    read: fn(&str) -> Path<F>,
) -> Result<BTreeSet<F>, InvalidMask> {
    if mask.is_empty() && !model::sabotage!("empty-mask-accepted") {
        return Err(InvalidMask::Empty { resource });
    }
    let field = |path: &String| match read(path) {
        Path::Mutable(field) => Ok(field),
        Path::Immutable => Err(InvalidMask::NotMutable {
            resource,
            path: path.clone(),
        }),
        Path::Unknown => Err(InvalidMask::Unknown {
            resource,
            path: path.clone(),
        }),
    };
    mask.iter().map(field).collect()
}

//! The one answer of a group that does not answer.

use thiserror::Error;

/// The group has no leader here, or lost it before it answered: *retry*, or *unknown*.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("group has no leader here{}", if *.unknown { " any more" } else { "" })]
pub struct Unavailable {
    /// Whether the request may have been carried out nevertheless, or may yet be.
    pub unknown: bool,
}

impl Unavailable {
    /// Nothing was done.
    pub(crate) const NOT_DONE: Unavailable = Unavailable { unknown: false };
    /// It may have been done, or may yet be.
    pub(crate) const UNKNOWN: Unavailable = Unavailable { unknown: true };
}

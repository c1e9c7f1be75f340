//! How full the disk is.

/// How full the disk is, after [`crate::settings::DiskMarks`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum DiskLevel {
    /// Everything is accepted.
    Normal,
    /// Publishes are refused; acks, deletes and votes are written.
    High,
    /// Only what frees space is written, and votes.
    Full,
}

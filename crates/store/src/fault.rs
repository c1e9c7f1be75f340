//! What can go wrong with a disk. Reads answer [`engine::Fault`], which stops one replica; a
//! [`WriteFault`] stops the whole store.

use std::path::PathBuf;

use thiserror::Error;

/// The disk refused a write or an fsync.
///
/// What was written may or may not be there: *unknown*. Nothing is tried again, because after a
/// failed fsync the kernel may drop the pages and report success the next time. The store refuses
/// everything from then on, and its node must stop.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum WriteFault {
    /// This write was the first to fail.
    #[error("disk refused a write: {0}")]
    Refused(String),
    /// An earlier write failed; this one was not tried.
    #[error("store stopped writing after an earlier fault: {0}")]
    Stopped(String),
    /// The store was closed before the write was made.
    #[error("store is closed")]
    Closed,
}

/// Why a store was not opened. Nothing was changed, and nothing was created over old data.
#[derive(Debug, Error)]
pub enum OpenError {
    /// Another process has the data folder open.
    #[error("data folder {folder} is in use by another process; stop it, or choose another folder")]
    InUse {
        /// The data folder.
        folder: PathBuf,
    },
    /// The folder holds no node where one was expected.
    #[error("data folder {folder} holds no node; initialise it, or correct the path")]
    Empty {
        /// The data folder.
        folder: PathBuf,
    },
    /// The folder holds no node, but is not empty either.
    #[error(
        "data folder {folder} holds no node, but it holds {found}; choose an empty folder, or bring \
         the rest back if this was a node's"
    )]
    NotEmpty {
        /// The data folder.
        folder: PathBuf,
        /// The first thing that was found.
        found: String,
    },
    /// A new node was asked for, but the folder holds one.
    #[error(
        "data folder {folder} already holds node {node}; start it as it is, or choose an empty folder"
    )]
    Occupied {
        /// The data folder.
        folder: PathBuf,
        /// The node whose data it is.
        node: u64,
    },
    /// The folder says whose data it holds, but the data is gone.
    #[error(
        "data folder {folder} belongs to node {node}, but its database is gone; bring the data back, \
         or remove the node from the cluster and start in an empty folder as a new one"
    )]
    Emptied {
        /// The data folder.
        folder: PathBuf,
        /// The node whose data it was.
        node: u64,
    },
    /// The data is there but is not what was written.
    #[error(
        "database in {folder} is damaged: {what}; bring the data back, or remove the node from the \
         cluster and start in an empty folder as a new one"
    )]
    Damaged {
        /// The data folder.
        folder: PathBuf,
        /// What was found.
        what: String,
    },
    /// The data was written by a later version of the program.
    #[error(
        "data in {folder} has format {found}; this program knows up to {known}: run a newer one"
    )]
    Newer {
        /// The data folder.
        folder: PathBuf,
        /// The format of the data.
        found: u32,
        /// The latest format that this program knows.
        known: u32,
    },
    /// The folder can't be read or written.
    #[error("data folder {folder} can't be used: {what}")]
    Unusable {
        /// The data folder.
        folder: PathBuf,
        /// What was refused, and why.
        what: String,
    },
}

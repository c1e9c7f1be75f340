//! Builds a node.

use thiserror::Error;

/// Why a node did not start, or stopped.
#[derive(Debug, Error)]
pub enum StartError {
    /// The crates that a node is made of are not joined yet.
    #[error("this build has no server yet")]
    NoServer,
}

//! Whether the store may still write: the first fault ends it.

use std::sync::OnceLock;

use crate::backend::DiskError;
use crate::fault::WriteFault;

/// Sound until the first fault, and never again.
#[derive(Debug, Default)]
pub(crate) struct Health(OnceLock<String>);

impl Health {
    /// Refuses once there was a fault.
    pub(crate) fn check(&self) -> Result<(), WriteFault> {
        match self.0.get() {
            None => Ok(()),
            Some(first) => Err(WriteFault::Stopped(first.clone())),
        }
    }

    /// Ends the store's writing.
    pub(crate) fn fail(&self, error: &DiskError) -> WriteFault {
        let text = error.to_string();
        if !model::sabotage!("failed-write-is-not-the-last") && self.0.set(text.clone()).is_ok() {
            tracing::error!(error = %text, "disk refused a write; the node must stop");
        }
        WriteFault::Refused(text)
    }
}

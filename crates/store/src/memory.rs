//! A disk in memory that loses what was not synced: what the simulator and most tests run on.

use std::sync::Arc;
use std::time::Duration;

/// A disk in memory. Clones are the same disk; it outlives the stores that are opened on it.
#[derive(Clone, Debug, Default)]
pub struct MemoryDisk {}

impl MemoryDisk {
    /// An empty disk.
    #[must_use]
    pub fn new() -> Self {
        MemoryDisk::default()
    }
}

/// When a store in memory writes what waits for its writer.
#[derive(Clone)]
pub enum Pace {
    /// In the call that asks for it: `done` has been called when the call returns.
    AtOnce,
    /// When the owner calls [`crate::Store::write_waiting`]. The function is called once for each
    /// batch that begins to wait, with the time that the disk will take for it.
    Driven(Arc<dyn Fn(Duration) + Send + Sync>),
}

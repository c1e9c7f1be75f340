//! The disk: one RocksDB per node, and a memory backend that loses what was not synced.
//!
//! - [`store`]: the handle, and its promises.
//! - [`entry`]: what a log holds, as the store sees it.
//! - [`state`]: what the state machines read.
//! - [`settings`]: what a store can be told.
//! - [`memory`]: the disk that loses what was not synced.
//! - [`identity`]: whose data a folder holds.
//! - [`level`]: how full the disk is.
//! - [`fault`]: what can go wrong.

pub mod entry;
pub mod fault;
pub mod identity;
pub mod level;
pub mod memory;
pub mod settings;
pub mod state;
pub mod store;

pub use entry::{Applied, LogBounds, LogEntry, Payloads, Position};
pub use fault::{OpenError, WriteFault};
pub use identity::Identity;
pub use level::DiskLevel;
pub use memory::{MemoryDisk, Pace};
pub use settings::{Settings, Start};
pub use state::StateView;
pub use store::{Done, Store};

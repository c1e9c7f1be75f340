//! The disk: one RocksDB per node, and a memory backend that loses what was not synced.
//!
//! - [`store`]: the handle, and its promises.
//! - [`entry`]: what a log holds, as the store sees it.
//! - [`settings`], [`identity`], [`level`], [`fault`]: what a store is told, and what it tells.
//! - `core`: what the handles share; `group`, `group_log`: what is in memory for one group.
//! - `log`, `log_read`, `writer`, `threads`: the logs of all groups, and the one that writes them.
//! - [`state`], `flush`: what the state machines read and write, and how it gets to the disk.
//! - [`checkpoint`]: a group's state on its way from one disk to another.
//! - `payload_cache`: recent payloads.
//! - `sync_times`: how long the disk takes.
//! - `key`, `row`, `entry_row`: where each row stands, and what it looks like.
//! - `health`, `start`: the first fault, and the first look.
//! - `backend`: the seam, with RocksDB and the memory disk behind it.

mod backend;
pub mod checkpoint;
mod core;
pub mod entry;
mod entry_row;
pub mod fault;
mod flush;
mod group;
mod group_log;
mod health;
pub mod identity;
mod key;
pub mod level;
mod log;
mod log_read;
mod payload_cache;
mod row;
pub mod settings;
mod start;
pub mod state;
pub mod store;
mod sync_times;
mod threads;
mod writer;

pub use backend::memory::{Faults, MemoryDisk, Pace};
pub use checkpoint::install::{Install, InstallError, Sealed};
pub use checkpoint::{Digest, Refers};
pub use entry::{Applied, LogBounds, LogEntry, Payloads, Position};
pub use fault::{OpenError, WriteFault};
pub use identity::{Called, Identity};
pub use level::DiskLevel;
pub use settings::{DiskMarks, Limits, Settings, Start};
pub use state::StateView;
pub use store::Store;
pub use sync_times::SyncTimes;
pub use writer::Done;

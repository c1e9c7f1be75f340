//! Messages, and what was acknowledged of them: the state machine of a shard.
//!
//! [`apply`] runs on every replica and decides alike on each. Two ways of keeping what a
//! subscription has acknowledged exist side by side. Where it is ordered and the message has a
//! key, a [lane](crate::table::lane) has a position that only moves on. Elsewhere each
//! [run](crate::table::run) has its [holes](crate::table::holes).

mod apply;
mod command;

mod attach;
mod close_topic;
mod detach;
mod open;
mod publish;

mod activate;
pub mod copy;
mod drop_sealed;
mod reopen;
mod seal;
mod seal_absent;
mod stage;

mod acknowledge;
mod rewind;

mod extend;
mod fail;
mod grant;

mod sweep;

mod holes;
mod lane;
mod run_release;
mod settlement;

mod backlog;
mod backlog_size;
pub mod read;

#[cfg(test)]
mod tests;

pub use activate::Activate;
pub use apply::{At, apply};
pub use backlog::Backlog;
pub use backlog_size::{BacklogSize, PAYLOAD_RUNS};
pub use command::{
    AckOutcome, Acknowledge, Attach, CloseTopic, Command, Detach, Effect, Extend, Fail, FailCause,
    Failed, Grant, Granted, LaneRewind, LeaseOutcome, Opening, Outcome, Publish, Rejected, Reply,
    Rewind, Sweep, Swept,
};
pub use drop_sealed::DropSealed;
pub use reopen::Reopen;
pub use seal::Seal;
pub use seal_absent::SealAbsent;
pub use stage::{Stage, Unstage};

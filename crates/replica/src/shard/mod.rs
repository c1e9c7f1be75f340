//! A shard's leader at work: callers and sessions on one side, the log on the other.
//!
//! All decisions are [`engine::dispatch::Leader`]'s; here they are carried out. One task for each
//! shard owns its state, so there is no lock and no task for each message.
//!
//! - `client`: what the rest of the node calls.
//! - `session`: what an open pull hears.
//! - `forward`: dead letters on their way out.
//! - `request`: a call on its way to the task.
//! - `host`: the task, from leadership to leadership.
//! - `shell`: one leadership.
//! - `waiting`: who is to be answered.

mod client;
mod forward;
mod host;
mod request;
mod session;
mod shell;
mod waiting;

pub(crate) use client::CatalogueLogged;
pub use client::{PublishError, ShardClient};
pub use forward::ForwardRequest;
pub(crate) use host::{Host, host};
pub use session::{SessionChange, SessionEvent};

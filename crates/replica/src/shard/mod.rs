//! A shard's leader at work: callers and sessions on one side, the log on the other.
//!
//! All decisions are [`engine::dispatch::Leader`]'s; here they are carried out. One task for each
//! shard owns its state, so there is no lock and no task for each message.
//!
//! - `client`, `session`: what the rest of the node calls; what an open pull hears and says.
//! - `shards`, `local`: all shards, wherever they are led; those with a replica here.
//! - `way`: who leads, and how a call finds it.
//! - `link`: calls and sessions between two nodes.
//! - `forward`: dead letters on their way out.
//! - `request`, `answer`: a call on its way to the task, and its answer on the way back.
//! - `hosts`, `host`: the tasks of a node; one of them, from leadership to leadership.
//! - `shell`: one leadership.
//! - `waiting`: who is to be answered.

mod answer;
mod client;
mod forward;
mod host;
mod hosts;
mod link;
mod local;
mod request;
mod session;
mod shards;
mod shell;
mod waiting;
mod way;

pub use client::{PublishError, ShardClient};
pub use forward::ForwardRequest;
pub(crate) use hosts::{Hosts, Site};
pub use link::Links;
pub(crate) use local::CatalogueLogged;
pub use session::{SessionChange, SessionEvent, ShardSession};
pub use shards::{ShardClients, Shards};

//! The face: Pub/Sub v1 over gRPC; sessions and errors.
//!
//! - [`serve`]: the listener with all services.
//! - `publisher`, `subscriber`: one file for each call or group of calls.
//! - `catalogue`: reads and changes of topics and subscriptions.
//! - `convert`: resources between the wire and the engine.
//! - `probe`: what load balancers ask; `metrics`: what is worth watching.
//! - `status`: every failure as a gRPC status.

mod catalogue;
mod convert;
mod deadline;
mod health;
mod metrics;
mod probe;
mod publisher;
mod serve;
mod shutdown;
mod status;
mod subscriber;
mod trailers;
mod undecodable;
mod unsupported;

pub use serve::{ServeError, serve};
pub use shutdown::{Shutdown, ShutdownTrigger, shutdown};

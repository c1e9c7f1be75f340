//! A group's checkpoint: the rows of its state and the payloads that they refer to, on their way
//! from one node's disk to another's.
//!
//! - `record`, `chunk`: what travels, and how it is packed.
//! - `export`: a checkpoint as it was at one moment, on its way out.
//! - `digest`: whether two replicas hold the same.
//! - [`install`]: on its way in, beside the state that is still valid.
//! - `switch`: the moment at which it becomes the state.
//! - `discard`: what an install leaves behind, whether it was finished or not.

mod chunk;
mod digest;
mod discard;
mod export;
pub mod install;
mod record;
mod switch;

use engine::Fault;
use engine::table::run::PayloadAt;

pub use digest::Digest;

/// Which payload a row of the state refers to, if to any: key and value of the row are given. The
/// store knows no tables.
pub type Refers = fn(&[u8], &[u8]) -> Result<Option<PayloadAt>, Fault>;

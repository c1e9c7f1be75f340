//! Which shard owns which key: pins, as a registry group keeps them.
//!
//! The pins of all keys are spread over a fixed number of groups by the hash of the key, see
//! [`Registries`]. [`apply`] decides alike on every replica of a group. Each command names many
//! keys and may be repeated or come late: what it may change, it compares with an epoch first, and
//! its answer is always the same, the pins of those keys as they are now.
//!
//! A group knows nothing of messages, and its leader keeps nothing in memory but how far it has come
//! in asking after old pins, see [`PinSweep`]. That at most one
//! shard accepts publishes of a key is kept by the shards: they open a strand only at an epoch
//! that they got from here.

mod apply;
mod claim;
mod command;
mod move_pins;
pub mod read;
mod registries;
mod release;
mod sweep;
pub mod table;

pub use apply::apply;
pub use claim::Claim;
pub use command::{Command, Reply};
pub use move_pins::{MovePins, PinMove};
pub use registries::Registries;
pub use release::{PinRelease, Release};
pub use sweep::{PinSweep, PinsByShard};
pub use table::pin::{MoveId, Pin};

#[cfg(test)]
mod tests;

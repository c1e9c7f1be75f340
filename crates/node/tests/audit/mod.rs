//! An audit under faults: clients at work whose every step is written down, and judged in the end
//! by the checkers of every promise.

mod consumer;
pub(crate) mod load;
mod publisher;
pub(crate) mod recorder;
pub(crate) mod resources;
pub(crate) mod way;

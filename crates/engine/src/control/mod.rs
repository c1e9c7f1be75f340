//! Topics and subscriptions: the state machine of the control group.

mod command;

pub use command::{Command, Outcome};

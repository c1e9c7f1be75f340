//! The rows of a registry group. Their tables are numbered from 128; see [`crate::table`].
//!
//! In sort order: [`counters`], [`pin`].

pub mod counters;
pub mod pin;

//! The leader of a shard over the real state machine, scenario by scenario.

#[expect(dead_code, reason = "the random histories use all of it")]
mod bench;

mod basic;
mod ordering;

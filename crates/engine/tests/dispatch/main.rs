//! The leader of a shard over the real state machine, scenario by scenario.

#[expect(dead_code, reason = "the random histories use all of it")]
mod bench;

mod affinity;
mod basic;
mod claim;
mod dead_letter;
mod exactly_once;
mod filter;
mod flow;
mod ordering;
mod publish;
mod redelivery;
mod release;
mod settings;
mod sweep;

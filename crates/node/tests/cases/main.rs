//! What users of comparable systems met, each as its user would notice it: through the public API
//! of a node in a process of its own.

mod byte_limits;
mod client;
mod dead_letter;
#[path = "../../../store/tests/rig/disk.rs"]
#[expect(dead_code, reason = "the store's tests use all of it")]
mod disk;
mod exactly_once;
mod filters;
mod first_nack;
mod full_disk;
mod health_watch;
mod long_names;
mod mixed_keys;
#[path = "../node/mod.rs"]
mod node;
mod order;
mod pull_deadlines;
mod reopened_streams;
mod rewound_pull;
mod storage_policy;
mod stream;
mod stream_flow;
mod stream_protocol;
mod unreadable_requests;
mod update_masks;

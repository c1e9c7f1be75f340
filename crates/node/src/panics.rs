//! A panic in any part of a node ends it.
//!
//! The parts run in tasks and threads of their own, and a panic ends only the one that it is in. A
//! node that goes on without one of them, a shard's leader or the writer, is worse than one that is
//! down: its clients wait, and nobody takes over from it.

use std::panic;
use std::process;

/// From now on a panic in any thread of this process is reported, and ends the process at once, as
/// `kill -9` would.
pub fn end_process() {
    let report = panic::take_hook();
    panic::set_hook(Box::new(move |panicked| {
        report(panicked);
        eprintln!(
            "orderly: the node stops, because a part of it has panicked. What it answered is on its \
             disk. This is a defect: please report it, with the lines above"
        );
        process::abort();
    }));
}

//! The memory of another process, as Linux tells it.

use std::fs;
use std::time::Duration;

use tokio::time::{Instant, sleep};

use crate::cli::Failure;

/// How often a process is looked at until it has settled.
const LOOK: Duration = Duration::from_secs(1);
/// Allocators give back what was freed in the last ten seconds or so, and buffers are written out
/// meanwhile: a process that has not changed for so long has done with both.
const STILL: Duration = Duration::from_secs(12);
/// One that changes all the time is looked at for no longer.
const SETTLE_MAX: Duration = Duration::from_secs(40);
/// A change that doesn't count: a 256th.
const NOISE: u64 = 256;

/// The memory that a process really has, in bytes, once it has given back what it no longer needs.
///
/// # Errors
/// [`Failure::Usage`] if there is no such process.
pub(crate) async fn settled_bytes(process: u32) -> Result<u64, Failure> {
    let began = Instant::now();
    let mut changed = began;
    let mut settled = resident_bytes(process)?;
    while changed.elapsed() < STILL && began.elapsed() < SETTLE_MAX {
        sleep(LOOK).await;
        let bytes = resident_bytes(process)?;
        if bytes.abs_diff(settled) > settled / NOISE {
            settled = bytes;
            changed = Instant::now();
        }
    }
    resident_bytes(process)
}

/// The memory that a process has now.
fn resident_bytes(process: u32) -> Result<u64, Failure> {
    let path = format!("/proc/{process}/status");
    let status = fs::read_to_string(&path);
    let bytes = status.ok().as_deref().and_then(parse);
    bytes.ok_or_else(|| Failure::Usage(format!("{path} does not tell the memory of a process")))
}

fn parse(status: &str) -> Option<u64> {
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kibibytes = line.trim().strip_suffix(" kB")?.parse::<u64>().ok()?;
    Some(kibibytes * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_has_memory_and_no_process_has_none() {
        assert!(resident_bytes(std::process::id()).unwrap() > 100_000);
        assert!(resident_bytes(u32::MAX).is_err());
    }
}

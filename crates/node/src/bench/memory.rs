//! The memory of another process, as Linux tells it.

use std::fs;

use crate::cli::Failure;

/// The memory that a process really has, in bytes.
///
/// # Errors
/// [`Failure::Usage`] if there is no such process.
pub(crate) fn resident_bytes(process: u32) -> Result<u64, Failure> {
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

//! Tells a torn write from damage in RocksDB's write-ahead logs.
//!
//! When the power goes during a write, its record may be there in part, with zeros or old bytes for
//! the rest. Nobody was told of it, so it may be dropped. But a record that does not fit and has
//! a later write behind it had been synced: dropping it would lose what was acknowledged. (The very
//! last record can be either, and no one can tell.)
//!
//! The format is that of RocksDB's `log_format.h`: blocks of 32 KiB; in them records, each with a
//! masked CRC-32C over type and content, a length (u16), and a type (u8), little endian; a write
//! is one full record, or a first, middles and a last. A block's end too short for a header is
//! filled with zeros.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

const BLOCK: usize = 32 * 1024;
const HEADER: usize = 7;
/// The type of a record that is a whole write.
const FULL: u8 = 1;
/// The type of a write's first record.
const FIRST: u8 = 2;
/// The type of a write's last record. A middle one stands between.
const LAST: u8 = 4;

/// Whether the logs of a database have a record that does not fit, and no write begins behind it.
pub(super) fn ends_in_torn_write(database: &Path) -> io::Result<bool> {
    let mut reading = Reading::default();
    for log in logs(database)? {
        let mut log = File::open(log)?;
        let mut block = Vec::with_capacity(BLOCK);
        loop {
            block.clear();
            (&mut log).take(BLOCK as u64).read_to_end(&mut block)?;
            if block.is_empty() {
                break;
            }
            reading.block(&block);
        }
    }
    Ok(reading.misfit && !reading.goes_on)
}

/// The logs in the order of their writing: names are numbers of six digits and more.
fn logs(database: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(database)? {
        let path = entry?.path();
        let number = path
            .file_stem()
            .and_then(|name| name.to_str()?.parse().ok());
        if let (Some(number), true) = (number, path.extension().is_some_and(|end| end == "log")) {
            found.push((number, path));
        }
    }
    found.sort_unstable_by_key(|(number, _): &(u64, _)| *number);
    Ok(found.into_iter().map(|(_, path)| path).collect())
}

/// What was found so far.
#[derive(Default)]
struct Reading {
    /// A record did not fit.
    misfit: bool,
    /// Behind that, a write begins.
    goes_on: bool,
}

impl Reading {
    fn block(&mut self, block: &[u8]) {
        let mut rest = block;
        while rest.len() >= HEADER {
            match record(rest) {
                Some((kind, length)) => {
                    self.goes_on |= self.misfit && matches!(kind, FULL | FIRST);
                    rest = &rest[length..];
                }
                // Its length says nothing either: the next record may begin anywhere.
                None => {
                    self.misfit = true;
                    rest = &rest[1..];
                }
            }
        }
        // A cut inside of a header.
        self.misfit |= rest.iter().any(|byte| *byte != 0);
    }
}

/// The type and length of the record that `bytes` begin with, if its checksum fits.
fn record(bytes: &[u8]) -> Option<(u8, usize)> {
    let (sum, rest) = bytes.split_first_chunk::<4>()?;
    let (length, rest) = rest.split_first_chunk::<2>()?;
    let kind = *rest.first()?;
    let length = usize::from(u16::from_le_bytes(*length));
    let summed = rest.get(..=length)?;
    let fits =
        (FULL..=LAST).contains(&kind) && masked(crc32c::crc32c(summed)) == u32::from_le_bytes(*sum);
    fits.then_some((kind, HEADER + length))
}

/// RocksDB stores checksums turned and shifted, so that one over bytes with a checksum is sound.
fn masked(sum: u32) -> u32 {
    sum.rotate_right(15).wrapping_add(0xa282_ead8)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(kind: u8, content: &[u8]) -> Vec<u8> {
        let summed = [&[kind], content].concat();
        let sum = masked(crc32c::crc32c(&summed)).to_le_bytes();
        let length = (content.len() as u16).to_le_bytes();
        [&sum[..], &length, &summed].concat()
    }

    fn torn(logs: &[Vec<u8>]) -> bool {
        let folder = tempfile::tempdir().unwrap();
        for (number, log) in (9..).zip(logs) {
            fs::write(folder.path().join(format!("{number:06}.log")), log).unwrap();
        }
        ends_in_torn_write(folder.path()).unwrap()
    }

    fn flipped(mut log: Vec<u8>, at: usize) -> Vec<u8> {
        log[at] ^= 1;
        log
    }

    #[test]
    fn whole_logs_are_not_torn() {
        let log = [
            written(FULL, b"one"),
            written(FIRST, b"t"),
            written(LAST, b"wo"),
        ]
        .concat();
        assert!(!torn(&[log.clone(), log]));
        assert!(!torn(&[]));
    }

    #[test]
    fn a_cut_zeroed_or_changed_last_write_is_torn() {
        let (one, two) = (written(FULL, b"one"), written(FULL, b"two"));
        let log = [one.clone(), two.clone()].concat();
        assert!(torn(&[log[..log.len() - 1].to_vec()]));
        assert!(torn(&[log[..one.len() + 3].to_vec()]));
        assert!(torn(&[[&log[..log.len() - 2], &[0; 5_000]].concat()]));
        assert!(torn(&[flipped(log.clone(), one.len() + 8)]));
        assert!(torn(&[flipped(log, one.len() + 8), Vec::new()]));
    }

    #[test]
    fn a_changed_write_with_another_behind_is_damage() {
        let log = [written(FULL, b"one"), written(FULL, b"two")].concat();
        for at in 0..10 {
            assert!(!torn(&[flipped(log.clone(), at)]), "byte {at}");
        }
        assert!(
            !torn(&[flipped(written(FULL, b"one"), 8), log]),
            "in the next log"
        );
    }

    #[test]
    fn a_write_in_a_later_block_counts() {
        let mut log = flipped(written(FULL, b"one"), 8);
        log.resize(BLOCK, 0);
        assert!(torn(std::slice::from_ref(&log)));
        log.extend(written(FULL, b"two"));
        assert!(!torn(&[log]));
    }
}

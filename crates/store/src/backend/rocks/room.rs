//! Room on the disk: what is owed to it, and how what was deleted is given back.

use std::sync::atomic::{AtomicU8, Ordering};

use rocksdb::{FlushOptions, properties};

use super::RocksBackend;
use super::options::RELOCATED_MAX;
use crate::backend::DiskError;
use crate::key::Column;

/// Bytes of all blob files that hold a live payload. Not among the names that the binding has.
const LIVE_BLOB_BYTES: &str = "rocksdb.live-blob-file-size";
/// Bytes in them of payloads that are no longer live.
const BLOB_GARBAGE_BYTES: &str = "rocksdb.live-blob-file-garbage-size";
/// How the share of blob files whose live payloads compactions move is set.
const RELOCATED_SHARE: &str = "blob_garbage_collection_age_cutoff";

/// Sixteenths of the blob files whose live payloads a compaction may move now: see
/// [`RELOCATED_MAX`]. Coarse, since RocksDB writes a file for each change.
pub(super) struct Relocation(AtomicU8);

impl Default for Relocation {
    /// As the options have it when a database is opened.
    fn default() -> Self {
        Relocation(AtomicU8::new(RELOCATED_MAX))
    }
}

impl RocksBackend {
    /// Bytes in memory for which tables and blob files have yet to be written. They stand in the
    /// write-ahead logs until then, and only then these go.
    pub(super) fn owed(&self) -> Result<u64, DiskError> {
        let mut owed = 0;
        for column in Column::ALL {
            let bytes = self
                .db
                .property_int_value_cf(&self.column(column), properties::CUR_SIZE_ALL_MEM_TABLES)?;
            owed += bytes.unwrap_or(0);
        }
        Ok(owed)
    }

    /// Writes out all that is in memory. So write-ahead logs go, and deletions become tables,
    /// which RocksDB then compacts.
    pub(super) fn let_go(&self) -> Result<(), DiskError> {
        let columns = Column::ALL.map(|column| self.column(column));
        let columns: Vec<_> = columns.iter().collect();
        Ok(self.db.flush_cfs_opt(&columns, &FlushOptions::default())?)
    }

    /// Lets compactions move payloads where that gives back enough, and as far as a quarter of what
    /// is free has room for them: they are on the disk twice until the old files go, and others write
    /// meanwhile.
    pub(super) fn relocate_within(&self, free: u64) -> Result<(), DiskError> {
        let column = self.column(Column::Message);
        let bytes = |property| self.db.property_int_value_cf(&column, property);
        let all = bytes(LIVE_BLOB_BYTES)?.unwrap_or(0);
        let garbage = bytes(BLOB_GARBAGE_BYTES)?.unwrap_or(0);
        let share = match is_worth_it(garbage, all) {
            true => share(free, all),
            false => 0,
        };
        if self.relocation.0.swap(share, Ordering::Relaxed) != share {
            let text = (f64::from(share) / 16.0).to_string();
            self.db
                .set_options_cf(&column, &[(RELOCATED_SHARE, &text)])?;
        }
        Ok(())
    }
}

/// Whether so much of blob files is garbage that live payloads should be moved out of it. A file
/// without any goes by itself, and consumers that keep up leave nothing else; a backlog would be
/// copied again and again for nothing, which at half of the maximum rate took half of the disk's
/// bandwidth.
fn is_worth_it(garbage: u64, all: u64) -> bool {
    garbage >= all / 4
}

/// Sixteenths of `live` bytes that a quarter of `free` bytes have room for.
fn share(free: u64, live: u64) -> u8 {
    let share = (free / 4).saturating_mul(16).checked_div(live);
    share.map_or(RELOCATED_MAX, |share| share.min(RELOCATED_MAX.into()) as u8)
}

#[cfg(test)]
mod tests {
    use super::{is_worth_it, share};

    #[test]
    fn a_backlog_stays_where_it_is() {
        assert!(!is_worth_it(0, 1_000));
        assert!(!is_worth_it(249, 1_000));
        assert!(is_worth_it(250, 1_000));
        assert!(is_worth_it(0, 0), "it costs nothing");
    }

    #[test]
    fn payloads_are_moved_within_a_quarter_of_what_is_free() {
        assert_eq!(share(1_000, 0), 4, "there is nothing to move");
        assert_eq!(share(1_000, 1_000), 4);
        assert_eq!(share(1_000, 2_000), 2);
        assert_eq!(share(100, 1_000), 0);
        assert_eq!(share(0, 1_000), 0);
    }
}

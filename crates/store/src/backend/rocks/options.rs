//! How RocksDB is set up. Figures without a source are from measurements on two cores.

use rocksdb::{
    BlockBasedOptions, Cache, ColumnFamilyDescriptor, DBCompressionType, DBRecoveryMode, LogLevel,
    Options,
};

use crate::key::Column;
use crate::settings::Limits;

const MEBIBYTE: usize = 1024 * 1024;

/// Write-ahead logs together; beyond it the column that holds the oldest one is flushed.
const WAL_BYTES_MAX: u64 = 1024 * MEBIBYTE as u64;
/// The same as a share of a small disk: what stands in a log stands in a table, too, before the
/// log goes.
const WAL_SHARE_MAX: u64 = 16;
/// Below this a payload lies in a table; from here on in a blob file, so that compactions move
/// references only. Half a page would cost more in look-ups than it saves.
const BLOB_BYTES_MIN: u64 = 4 * 1024;
/// The part of a memtable that goes into a filter over its keys: some 20 bits for each small row.
/// With a new key for each message, half of all look-ups are for rows that are not there.
const STATE_BLOOM_SHARE: f64 = 0.02;

/// Sixteenths of the blob files, the oldest, whose live payloads a compaction moves, so that the
/// rest of the file goes. A compaction takes in all tables of this column if it has to, and with
/// all of the files it would need as much room as everything that is stored. `room` lowers it on a
/// disk that has less.
pub(super) const RELOCATED_MAX: u8 = 4;

/// Accepts that the last record of a write-ahead log is cut off by the end of the file.
pub(super) const CUT_END: DBRecoveryMode = DBRecoveryMode::TolerateCorruptedTailRecords;
/// Takes any record that does not fit for the end. RocksDB's default; in the middle of a log it
/// drops what was acknowledged, without a word.
pub(super) const ANY_END: DBRecoveryMode = DBRecoveryMode::PointInTime;

/// What matters of the disk.
pub(super) struct Disk {
    /// How large it is.
    pub(super) bytes: u64,
    /// Whether its file system takes writes past the page cache.
    pub(super) direct: bool,
}

/// Options of the whole database.
pub(super) fn database(
    create: bool,
    recovery: DBRecoveryMode,
    disk: &Disk,
    limits: &Limits,
) -> Options {
    let mut options = Options::default();
    options.create_if_missing(create);
    options.create_missing_column_families(create);
    // An fsync of a log that has grown commits the file system's journal, and ext4 first writes out
    // what the page cache holds of files that have grown meanwhile. With a table being flushed that
    // was up to 120 ms; tables that are written past the cache leave nothing to wait for.
    options.set_use_direct_io_for_flush_and_compaction(disk.direct);
    options.set_paranoid_checks(true);
    options.set_wal_recovery_mode(recovery);
    options.set_track_and_verify_wals_in_manifest(true);
    options.set_db_write_buffer_size(limits.memtable_bytes);
    options.set_max_total_wal_size(WAL_BYTES_MAX.min(disk.bytes / WAL_SHARE_MAX));
    // Columns without a write-ahead log exclude recycled log files.
    options.set_recycle_log_file_num(0);
    options.set_max_background_jobs(background_jobs());
    // Where they go through it, dirty pages go out steadily: no fsync waits for a whole table.
    options.set_bytes_per_sync(MEBIBYTE as u64);
    options.set_max_open_files(1_000);
    options.set_keep_log_file_num(4);
    options.set_max_log_file_size(8 * MEBIBYTE);
    options.set_log_level(LogLevel::Warn);
    options.set_stats_dump_period_sec(0);
    options
}

/// Every column with its options.
pub(super) fn columns(limits: &Limits) -> Vec<ColumnFamilyDescriptor> {
    let cache = Cache::new_lru_cache(limits.block_cache_bytes);
    let described = Column::ALL.map(|column| {
        let options = match column {
            Column::Log => log(&cache),
            Column::Meta => meta(&cache),
            Column::Message => message(&cache),
            Column::State => state(&cache, limits),
        };
        ColumnFamilyDescriptor::new(column.name(), options)
    });
    described.into()
}

/// Written and deleted in order, rarely read: entries are read from memory.
fn log(cache: &Cache) -> Options {
    let mut options = tables(cache);
    options.set_write_buffer_size(64 * MEBIBYTE);
    options.set_max_write_buffer_number(4);
    compact_deleted(&mut options);
    options
}

/// A few small rows that are overwritten all the time.
fn meta(cache: &Cache) -> Options {
    let mut options = tables(cache);
    options.set_write_buffer_size(4 * MEBIBYTE);
    options
}

/// Large rows, written once, read seldom, deleted one by one.
fn message(cache: &Cache) -> Options {
    let mut options = tables(cache);
    options.set_write_buffer_size(128 * MEBIBYTE);
    options.set_max_write_buffer_number(4);
    options.set_enable_blob_files(true);
    options.set_min_blob_size(BLOB_BYTES_MIN);
    options.set_blob_compression_type(DBCompressionType::Lz4);
    options.set_enable_blob_gc(true);
    options.set_blob_gc_age_cutoff(f64::from(RELOCATED_MAX) / 16.0);
    options.set_blob_gc_force_threshold(0.5);
    compact_deleted(&mut options);
    options
}

/// Small rows, read and overwritten often, also asked for when absent. Flushed by the store, so
/// its memtable is larger than what the store lets gather.
fn state(cache: &Cache, limits: &Limits) -> Options {
    let mut options = tables(cache);
    options.set_write_buffer_size(2 * limits.flush_bytes.max(32 * MEBIBYTE));
    options.set_max_write_buffer_number(4);
    options.set_memtable_prefix_bloom_ratio(STATE_BLOOM_SHARE);
    options.set_memtable_whole_key_filtering(true);
    options
}

/// Compacts a table that mostly deletes, instead of waiting until others have gathered: nothing
/// that it deletes leaves the disk before.
fn compact_deleted(options: &mut Options) {
    const WINDOW: usize = 1_000;
    const DELETIONS: usize = 900;
    const SHARE: f64 = 0.5;
    options.add_compact_on_deletion_collector_factory(WINDOW, DELETIONS, SHARE);
}

fn tables(cache: &Cache) -> Options {
    let mut blocks = BlockBasedOptions::default();
    blocks.set_block_cache(cache);
    blocks.set_block_size(16 * 1024);
    blocks.set_bloom_filter(10.0, false);
    blocks.set_cache_index_and_filter_blocks(true);
    blocks.set_pin_l0_filter_and_index_blocks_in_cache(true);
    let mut options = Options::default();
    options.set_block_based_table_factory(&blocks);
    options.set_compression_type(DBCompressionType::Lz4);
    options.set_level_compaction_dynamic_level_bytes(true);
    options
}

fn background_jobs() -> i32 {
    let cores = std::thread::available_parallelism().map_or(2, |cores| cores.get());
    (cores / 2).clamp(2, 8) as i32
}

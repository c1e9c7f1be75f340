//! The disk: one RocksDB per node, and a memory backend that loses what was not synced.

//! The power goes while a store writes: a file system in a file is shut down under it, so that
//! all that was not synced is lost. Needs root, `mkfs.ext4`, a loop device and `xfs_io`.

mod rig;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rig::disk::Disk;
use rig::*;
use store::{Start, Store};

/// Losses of power in a row, on the same disk.
const LOSSES: u64 = 4;
/// Entries that are acknowledged before each of them.
const ENTRIES: u64 = 300;

#[test]
fn nothing_acknowledged_is_lost_with_the_power() {
    let Some(disk) = Disk::new("power::nothing_acknowledged_is_lost_with_the_power") else {
        return;
    };
    drop(open(&disk, Start::New(identity())));
    let mut acknowledged = 0;
    for loss in 0..LOSSES {
        let store = open(&disk, Start::Existing);
        let begin = store
            .log_bounds(GROUP)
            .unwrap()
            .last
            .map_or(0, |last| last.index + 1);
        assert!(
            begin >= acknowledged,
            "loss {loss}: {acknowledged} were acknowledged"
        );
        assert_eq!(whole_log(&store, GROUP), entries(1, 0..begin));
        let applied = store.applied(GROUP).unwrap();
        assert!(applied.is_none_or(|applied| applied.at.index < begin));
        acknowledged = write(&store, begin);
        disk.lose_power();
        drop(store);
        disk.restore();
    }
}

/// Appends and applies; answers how many entries are on the disk, by the store's word.
fn write(store: &Store, begin: u64) -> u64 {
    let acknowledged = Arc::new(AtomicU64::new(begin));
    for index in begin..begin + 2 * ENTRIES {
        let told = acknowledged.clone();
        store.append(
            GROUP,
            entries(1, index..index + 1),
            Box::new(move |outcome| {
                outcome.expect("the disk is sound until the power goes");
                told.store(index + 1, Ordering::Release);
            }),
        );
        let applied_before = store
            .applied(GROUP)
            .unwrap()
            .map(|applied| applied.at.index);
        if applied_before.is_none_or(|before| before < index) {
            store
                .write_state(GROUP, applied(1, index), rows(&[]))
                .unwrap();
        }
        if index == begin + ENTRIES {
            store.flush_state().unwrap();
        }
    }
    wait_until("half of the writes", || {
        acknowledged.load(Ordering::Acquire) >= begin + ENTRIES
    });
    acknowledged.load(Ordering::Acquire)
}

fn open(disk: &Disk, start: Start) -> Store {
    Store::open(settings(&disk.path().join("data"), start)).unwrap()
}

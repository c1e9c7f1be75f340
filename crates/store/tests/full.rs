//! A real disk fills up, and has room again. Needs what [`rig::disk`] needs.

mod rig;

use std::fs::{self, File};
use std::io::Write;
use std::path::Path;

use rig::disk::Disk;
use rig::*;
use store::{DiskLevel, LogEntry, OpenError, Settings, Start, Store, WriteFault};

const MEBIBYTE: u64 = 1024 * 1024;

fn open(disk: &Disk, start: Start) -> Result<Store, OpenError> {
    let mut settings = Settings::new(disk.path().join("data"), start);
    settings.marks.high_free = 48 * MEBIBYTE;
    settings.marks.full_free = 12 * MEBIBYTE;
    settings.marks.reserve = 4 * MEBIBYTE;
    Store::open(settings)
}

#[test]
fn a_full_disk_is_foretold_refused_and_recovered_from() {
    let Some(disk) = Disk::new("full::a_full_disk_is_foretold_refused_and_recovered_from") else {
        return;
    };
    let store = open(&disk, Start::New(identity())).unwrap();
    let reserve = disk.path().join("data/RESERVE");
    let ballast = disk.path().join("ballast");
    let level = |wanted| wait_until("the level", || store.disk_level() == wanted);

    level(DiskLevel::Normal);
    assert_eq!(fs::metadata(&reserve).unwrap().len(), 4 * MEBIBYTE);
    append(&store, GROUP, entries(1, 0..10));
    // What the store flushes meanwhile makes room, which the ballast takes as well.
    let fill = |free, wanted| {
        wait_until("the level", || {
            leave_free(&ballast, disk.path(), free);
            store.disk_level() == wanted
        });
    };
    fill(30 * MEBIBYTE, DiskLevel::High);
    fill(8 * MEBIBYTE, DiskLevel::Full);
    wait_until("the end of the reserve", || !reserve.exists());
    append(&store, GROUP, entries(1, 10..20));

    leave_free(&ballast, disk.path(), 0);
    let (kept, refused) = append_until_refused(&store);
    assert!(matches!(refused, WriteFault::Refused(_)), "{refused}");
    drop(store);
    if let Err(error) = open(&disk, Start::Existing) {
        assert!(matches!(error, OpenError::Unusable { .. }), "{error}");
        assert!(error.to_string().contains("No space left"), "{error}");
    }

    fs::remove_file(&ballast).unwrap();
    let store = open(&disk, Start::Existing).unwrap();
    let end = store.log_bounds(GROUP).unwrap().last.unwrap().index + 1;
    assert!(end >= kept, "{kept} were acknowledged");
    let found = whole_log(&store, GROUP);
    assert_eq!(found[..20], entries(1, 0..20));
    assert!((20..end).map(large).eq(found[20..].iter().cloned()));
    wait_until("room", || store.disk_level() == DiskLevel::Normal);
    wait_until("the reserve", || reserve.exists());
    append(&store, GROUP, entries(1, end..end + 10));
}

/// An entry that weighs a mebibyte. The write-ahead log has some room of its own to fill.
fn large(index: u64) -> LogEntry {
    entry(1, index, &[&"large!! ".repeat(128 * 1024)])
}

/// Appends after the first 20 entries. Answers how many are on the disk, and the end.
fn append_until_refused(store: &Store) -> (u64, WriteFault) {
    (20..)
        .find_map(|index| {
            let outcome = wait_for(|done| store.append(GROUP, vec![large(index)], done));
            outcome.err().map(|refused| (index, refused))
        })
        .expect("the disk has an end")
}

/// Grows a file until only so many bytes are free.
fn leave_free(ballast: &Path, disk: &Path, free: u64) {
    let mut file = File::options()
        .create(true)
        .append(true)
        .open(ballast)
        .unwrap();
    let chunk = vec![1; 64 * 1024];
    let left = || {
        let space = rustix::fs::statvfs(disk).unwrap();
        space.f_bavail * space.f_frsize
    };
    while left() > free && file.write_all(&chunk).is_ok() {}
    file.sync_all().unwrap();
}

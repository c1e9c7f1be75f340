//! The disk in memory: power losses, failures, and writes whose time the owner decides.

mod rig;

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use engine::kv::View;
use rig::*;
use store::{DiskLevel, Faults, MemoryDisk, OpenError, Pace, Payloads, Start, Store, WriteFault};

fn open(disk: &MemoryDisk, pace: Pace) -> Store {
    let settings = settings(Path::new("memory"), Start::Existing);
    match Store::memory(disk, settings.clone(), pace.clone()) {
        Err(OpenError::Empty { .. }) => {
            let start = Start::New(identity());
            Store::memory(disk, store::Settings { start, ..settings }, pace).unwrap()
        }
        opened => opened.unwrap(),
    }
}

/// The outcome of a write, once it was told.
type Outcome = Arc<Mutex<Option<Result<(), WriteFault>>>>;

/// Notes the outcome of a write.
fn note() -> (Outcome, store::Done) {
    let outcome = Arc::new(Mutex::new(None));
    let noted = outcome.clone();
    (
        outcome,
        Box::new(move |told| *noted.lock().unwrap() = Some(told)),
    )
}

fn driven() -> (Arc<Mutex<Vec<Duration>>>, Pace) {
    let told = Arc::new(Mutex::new(Vec::new()));
    let noted = told.clone();
    let pace = Pace::Driven(Arc::new(move |takes| noted.lock().unwrap().push(takes)));
    (told, pace)
}

#[test]
fn a_driven_store_writes_when_it_is_told_to() {
    let disk = MemoryDisk::new();
    let sync_takes = Duration::from_millis(3);
    disk.set_faults(Faults {
        sync_takes,
        ..Faults::default()
    });
    let (told, pace) = driven();
    let store = open(&disk, pace);
    let (first, done) = note();
    store.append(GROUP, entries(1, 0..1), done);
    let (second, done) = note();
    store.append(GROUP, entries(1, 1..2), done);

    assert_eq!(*told.lock().unwrap(), [sync_takes], "told once for both");
    assert_eq!(whole_log(&store, GROUP), entries(1, 0..2), "but readable");
    assert_eq!(*first.lock().unwrap(), None);
    assert!(store.write_waiting());
    assert_eq!(*first.lock().unwrap(), Some(Ok(())));
    assert_eq!(*second.lock().unwrap(), Some(Ok(())));
    assert!(!store.write_waiting());

    store.append(GROUP, entries(1, 2..3), Box::new(|_| {}));
    assert_eq!(told.lock().unwrap().len(), 2, "told again for the next");
}

#[test]
fn what_waits_for_the_writer_is_lost_with_the_process() {
    let disk = MemoryDisk::new();
    let store = open(&disk, driven().1);
    store.append(GROUP, entries(1, 0..1), Box::new(|_| {}));
    store.write_waiting();
    store.append(GROUP, entries(1, 1..2), Box::new(|_| {}));
    disk.end_process();
    assert_eq!(
        whole_log(&open(&disk, Pace::AtOnce), GROUP),
        entries(1, 0..1)
    );
}

#[test]
fn state_never_comes_to_the_disk_before_its_entries() {
    let disk = MemoryDisk::new();
    let store = open(&disk, driven().1);
    let (outcome, done) = note();
    store.append(GROUP, entries(1, 0..1), done);
    store.write_state(GROUP, applied(1, 0), rows(&[])).unwrap();
    assert_eq!(*outcome.lock().unwrap(), Some(Ok(())));
    store.flush_state().unwrap();
    disk.lose_power(0);
    let store = open(&disk, Pace::AtOnce);
    assert_eq!(store.applied(GROUP), Ok(Some(applied(1, 0))));
    assert_eq!(whole_log(&store, GROUP), entries(1, 0..1));
}

#[test]
fn a_power_loss_takes_only_what_was_not_synced() {
    for seed in 0..8 {
        let disk = MemoryDisk::new();
        let store = open(&disk, Pace::AtOnce);
        append(
            &store,
            GROUP,
            vec![entry(1, 0, &["a"]), entry(1, 1, &["b"])],
        );
        store
            .write_state(GROUP, applied(1, 0), garbage(at(1, 0, 0)))
            .unwrap();
        store.flush_state().unwrap();
        purge(&store, GROUP, 1, 0);
        // Removes the payload, which is not synced.
        store.flush_state().unwrap();
        disk.lose_power(seed);

        let store = open(&disk, Pace::AtOnce);
        let view = store.view(GROUP).unwrap();
        assert_eq!(view.payload(at(1, 1, 0)), Ok(payload("b")));
        assert_eq!(store.applied(GROUP), Ok(Some(applied(1, 0))));
        store.flush_state().unwrap();
        assert!(view.payload(at(1, 0, 0)).is_err(), "removed again");
    }
}

#[test]
fn what_was_done_survives_a_power_loss() {
    for seed in 0..8 {
        let disk = MemoryDisk::new();
        let store = open(&disk, Pace::AtOnce);
        append(&store, GROUP, entries(1, 0..10));
        disk.lose_power(seed);
        let store = open(&disk, Pace::AtOnce);
        assert_eq!(whole_log(&store, GROUP), entries(1, 0..10));
    }
}

#[test]
fn a_failed_fsync_ends_all_writing() {
    for seed in 0..2 {
        let disk = MemoryDisk::new();
        let store = open(&disk, Pace::AtOnce);
        append(&store, GROUP, entries(1, 0..1));
        disk.set_faults(Faults {
            syncs_before_failure: Some(0),
            ..Faults::default()
        });
        let refused = wait_for(|done| store.append(GROUP, entries(1, 1..2), done));
        assert!(
            matches!(refused, Err(WriteFault::Refused(_))),
            "{refused:?}"
        );
        // The disk is well again: nothing is tried all the same.
        disk.set_faults(Faults::default());
        let stopped = wait_for(|done| store.append(GROUP, entries(1, 2..3), done));
        assert!(
            matches!(stopped, Err(WriteFault::Stopped(_))),
            "{stopped:?}"
        );
        let vote = wait_for(|done| store.save_vote(OTHER, Bytes::new(), done));
        assert!(matches!(vote, Err(WriteFault::Stopped(_))));
        let state = store.write_state(GROUP, applied(1, 0), rows(&[]));
        assert!(matches!(state, Err(WriteFault::Stopped(_))));
        assert!(matches!(store.flush_state(), Err(WriteFault::Stopped(_))));

        disk.lose_power(seed);
        let log = whole_log(&open(&disk, Pace::AtOnce), GROUP);
        assert_eq!(
            log,
            entries(1, 0..1 + seed),
            "there or not there, but whole"
        );
    }
}

#[test]
fn a_disk_that_fails_reads_answers_no_absence() {
    let disk = MemoryDisk::new();
    let store = open(&disk, Pace::AtOnce);
    append(&store, GROUP, entries(1, 0..1));
    let view = store.view(GROUP).unwrap();
    disk.set_faults(Faults {
        reads_fail: true,
        ..Faults::default()
    });
    assert!(view.get(b"\x01").is_err());
    assert!(view.floor(b"\x01", b"\x02").is_err());
    let scanned: Result<Vec<_>, _> = view.scan(b"\x01", b"\x02").collect();
    assert!(scanned.is_err());
    assert!(store.vote(OTHER).is_err());
}

#[test]
fn a_full_disk_is_foretold_and_then_refuses() {
    let disk = MemoryDisk::new();
    let mut settings = settings(Path::new("memory"), Start::New(identity()));
    settings.marks.reserve = 1_000;
    settings.marks.full_free = 3_000;
    settings.marks.high_free = 10_000;
    disk.set_faults(Faults {
        capacity: Some(100_000),
        ..Faults::default()
    });
    let store = Store::memory(&disk, settings, Pace::AtOnce).unwrap();
    let mut levels = vec![store.disk_level()];
    let refused = (0..).find_map(|index| {
        let outcome = wait_for(|done| store.append(GROUP, entries(1, index..index + 1), done));
        if levels.last() != Some(&store.disk_level()) {
            levels.push(store.disk_level());
        }
        outcome.err()
    });
    assert!(matches!(refused, Some(WriteFault::Refused(_))));
    assert_eq!(
        levels,
        [DiskLevel::Normal, DiskLevel::High, DiskLevel::Full]
    );
    assert!(disk.used() > 99_000, "the reserve was given up");

    disk.end_process();
    disk.set_faults(Faults {
        capacity: Some(200_000),
        ..Faults::default()
    });
    let store = open(&disk, Pace::AtOnce);
    assert_eq!(store.disk_level(), DiskLevel::Normal);
    let end = whole_log(&store, GROUP).len() as u64;
    append(&store, GROUP, entries(1, end..end + 1));
}

#[test]
fn a_flipped_bit_is_refused_or_harmless_but_never_believed() {
    let written = entries(1, 0..3);
    let state = rows(&[(b"\x01key", Some("value"))]);
    let refused = (0..2_000_u64)
        .filter(|seed| {
            let disk = MemoryDisk::new();
            let store = open(&disk, Pace::AtOnce);
            append(&store, GROUP, written.clone());
            wait_for(|done| store.save_vote(GROUP, "vote".into(), done)).unwrap();
            store
                .write_state(GROUP, applied(1, 1), state.clone())
                .unwrap();
            store.flush_state().unwrap();
            disk.end_process();
            assert!(disk.flip_bit(*seed));
            read_everything(&disk).is_err_and(|refusal| !refusal.is_empty())
        })
        .count();
    assert_eq!(refused, 2_000, "every row is looked at");

    fn read_everything(disk: &MemoryDisk) -> Result<(), String> {
        let settings = settings(Path::new("memory"), Start::Existing);
        let text = |error: &dyn std::fmt::Display| error.to_string();
        let store = Store::memory(disk, settings, Pace::AtOnce).map_err(|error| text(&error))?;
        let view = store.view(GROUP).map_err(|fault| text(&fault))?;
        store
            .read_log(GROUP, 0..9, usize::MAX, Payloads::Joined)
            .map_err(|fault| text(&fault))?;
        view.get(b"\x01key").map_err(|fault| text(&fault))?;
        Ok(())
    }
}

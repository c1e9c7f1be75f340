//! A group's state travels from one disk to another: whole or not at all, whatever happens on the
//! way.

mod rig;

use std::ops::Range;

use bytes::Bytes;
use engine::Fault;
use engine::kv::{View, Writes};
use engine::table::run::PayloadAt;
use model::GroupId;
use rig::*;
use store::checkpoint::install::BadChunk;
use store::{InstallError, LogEntry, Store};

/// The last entry in the checkpoints of these tests.
const LAST: u64 = 19;

/// What the checkpoints of these tests refer to: entries that are purged, and some that are not.
const REFERRED: [u64; 5] = [2, 7, 12, 15, 18];

fn both_disks(test: impl Fn(Rig)) {
    test(Rig::memory());
    test(Rig::rocks());
}

/// Entries as the leader has them, the first five of an earlier term. Their payloads are large, so
/// that the checkpoint has several chunks.
fn sent(indexes: Range<u64>) -> Vec<LogEntry> {
    let sent = |index| entry(term(index), index, &[&text(index)]);
    indexes.map(sent).collect()
}

fn text(index: u64) -> String {
    format!("payload {index} {}", "x".repeat(900_000))
}

fn term(index: u64) -> u64 {
    match index {
        0..5 => 1,
        5.. => 3,
    }
}

/// The payload of the leader's entry.
fn place(index: u64) -> PayloadAt {
    at(term(index), index, 0)
}

/// A leader: 20 entries are applied and 10 are purged; some payloads are still referred to.
fn leader(rig: &Rig) -> Store {
    let store = rig.first_start();
    append(&store, GROUP, sent(0..LAST + 1));
    let mut writes = rows(&[(b"\x01row", Some("value")), (b"\x05row", Some("other"))]);
    writes.extend(REFERRED.map(|index| reference(index as u8, place(index))));
    writes.extend(garbage(place(4)));
    store.write_state(GROUP, applied(3, LAST), writes).unwrap();
    store.flush_state().unwrap();
    purge(&store, GROUP, 3, 9);
    store
}

/// A follower that was away: it has applied 5 entries, and refers to payloads of its own.
fn follower(rig: &Rig) -> Store {
    let store = rig.first_start();
    append(&store, GROUP, sent(0..5));
    let mut writes = rows(&[(b"\x01row", Some("old")), (b"\x02row", Some("gone"))]);
    writes.extend([2, 3].map(|index| reference(index as u8, place(index))));
    store.write_state(GROUP, applied(1, 4), writes).unwrap();
    store.flush_state().unwrap();
    store
}

/// The follower as it was before the checkpoint.
fn assert_old(store: &Store) {
    assert_eq!(store.applied(GROUP).unwrap(), Some(applied(1, 4)));
    let view = store.view(GROUP).unwrap();
    assert_eq!(view.get(b"\x01row").unwrap().unwrap(), "old");
    assert_eq!(scan(&view, &[0], &[9]).len(), 4);
    assert!(view.payload(place(3)).unwrap() == payload(&text(3)));
    assert_eq!(store.log_bounds(GROUP).unwrap().purged, None);
    assert_eq!(whole_log(store, GROUP).len(), 5);
}

/// Has the leader's state and nothing else, and can go on from there.
fn assert_new(store: &Store, leader: &Store) {
    assert_eq!(store.applied(GROUP).unwrap(), Some(applied(3, LAST)));
    assert_eq!(
        store.flushed_applied(GROUP).unwrap(),
        Some(applied(3, LAST).at)
    );
    let digest = store.digest(GROUP, refers).unwrap();
    assert_eq!(digest, leader.digest(GROUP, refers).unwrap());
    let view = store.view(GROUP).unwrap();
    let rows = scan(&view, &[0], &[9]);
    assert_eq!(rows, scan(&leader.view(GROUP).unwrap(), &[0], &[9]));
    for index in REFERRED {
        let found = view.payload(place(index)).unwrap();
        assert!(found == payload(&text(index)), "payload of {index}");
    }
    let missing = view.payload(place(3));
    assert!(matches!(missing, Err(Fault::Missing(_))), "{missing:?}");
    let bounds = store.log_bounds(GROUP).unwrap();
    assert_eq!(bounds.purged, Some(applied(3, LAST).at));
}

/// What a group's disk holds, as a process that starts anew finds it.
fn used(rig: &mut Rig, store: Store) -> (Store, u64) {
    let store = rig.crash(store);
    // Leftovers go when the group is used first.
    store.applied(GROUP).unwrap();
    let used = match rig {
        Rig::Memory { disk, .. } => disk.used(),
        Rig::Rocks { .. } => 0,
    };
    (store, used)
}

#[test]
fn an_empty_disk_takes_a_checkpoint_and_goes_on() {
    both_disks(|mut rig| {
        let leader = leader(&Rig::memory());
        let chunks = export(&leader, GROUP);
        assert!(chunks.len() > 3, "{} chunks", chunks.len());
        let store = rig.first_start();
        install(&store, GROUP, &chunks).unwrap().switch().unwrap();
        assert_new(&store, &leader);
        let store = rig.crash(store);
        assert_new(&store, &leader);

        append(&store, GROUP, entries(4, LAST + 1..LAST + 3));
        let writes = rows(&[(b"\x01row", Some("newer"))]);
        store
            .write_state(GROUP, applied(4, LAST + 1), writes)
            .unwrap();
        store.flush_state().unwrap();
        purge(&store, GROUP, 4, LAST + 1);
        let store = rig.crash(store);
        assert_eq!(whole_log(&store, GROUP), entries(4, LAST + 2..LAST + 3));
        let view = store.view(GROUP).unwrap();
        assert_eq!(view.get(b"\x01row").unwrap().unwrap(), "newer");
        // What was installed can be sent on.
        assert!(!export(&store, GROUP).is_empty());
    });
}

#[test]
fn a_checkpoint_takes_the_place_of_an_older_state() {
    both_disks(|mut rig| {
        let leader = leader(&Rig::memory());
        let store = follower(&rig);
        let view = store.view(GROUP).unwrap();
        let sealed = install(&store, GROUP, &export(&leader, GROUP)).unwrap();
        assert_old(&store);
        sealed.switch().unwrap();
        assert_new(&store, &leader);
        assert_eq!(view.get(b"\x01row").unwrap().unwrap(), "value");
        drop(view);
        let store = rig.crash(store);
        assert_new(&store, &leader);
    });
}

#[test]
fn a_second_checkpoint_leaves_nothing_of_the_first() {
    let mut rig = Rig::memory();
    let leader = leader(&Rig::memory());
    let store = follower(&rig);
    let chunks = export(&leader, GROUP);
    install(&store, GROUP, &chunks).unwrap().switch().unwrap();
    let (store, first) = used(&mut rig, store);

    append(&leader, GROUP, sent(LAST + 1..LAST + 2));
    let writes = rows(&[(b"\x01row", Some("other"))]);
    leader
        .write_state(GROUP, applied(3, LAST + 1), writes)
        .unwrap();
    let chunks = export(&leader, GROUP);
    install(&store, GROUP, &chunks).unwrap().switch().unwrap();
    let (_, second) = used(&mut rig, store);
    assert_eq!(second, first, "bytes on the disk");
}

#[test]
fn a_crash_before_the_switch_leaves_the_old_state() {
    both_disks(|mut rig| {
        let leader = leader(&Rig::memory());
        let chunks = export(&leader, GROUP);
        let store = follower(&rig);
        let (mut store, before) = used(&mut rig, store);
        for count in 1..=chunks.len() {
            let mut install = store.install(GROUP, &chunks[0]).unwrap();
            for chunk in &chunks[1..count] {
                install.add(chunk).unwrap();
            }
            // A crash may find some of it on the disk.
            store.flush_state().unwrap();
            std::mem::forget(install);
            store = rig.crash(store);
            assert_old(&store);
        }
        let sealed = install(&store, GROUP, &chunks).unwrap();
        std::mem::forget(sealed);
        store = rig.crash(store);
        assert_old(&store);
        // Payloads stay until an install is finished; then nothing is left of all these.
        install(&store, GROUP, &chunks).unwrap().switch().unwrap();
        assert_new(&store, &leader);
        let (_, after) = used(&mut rig, store);
        let fresh = Rig::memory();
        let other = follower(&fresh);
        install(&other, GROUP, &chunks).unwrap().switch().unwrap();
        if let (Rig::Memory { .. }, Rig::Memory { disk, .. }) = (&rig, &fresh) {
            assert_eq!(after, disk.used(), "bytes on the disk; {before} before");
        }
    });
}

#[test]
fn a_loss_of_power_leaves_the_old_state_or_the_new_one() {
    let leader = leader(&Rig::memory());
    let chunks = export(&leader, GROUP);
    for seed in 0..40 {
        let rig = Rig::memory();
        let store = follower(&rig);
        let sealed = install(&store, GROUP, &chunks).unwrap();
        let switched = seed % 2 == 0;
        match switched {
            true => sealed.switch().unwrap(),
            false => std::mem::forget(sealed),
        }
        let Rig::Memory { disk, .. } = &rig else {
            unreachable!("made above");
        };
        disk.lose_power(seed);
        let store = rig.restart();
        match switched {
            true => assert_new(&store, &leader),
            false => assert_old(&store),
        }
    }
}

#[test]
fn a_disk_that_fails_the_switch_keeps_the_old_state() {
    let leader = leader(&Rig::memory());
    let chunks = export(&leader, GROUP);
    let rig = Rig::memory();
    let store = follower(&rig);
    let sealed = install(&store, GROUP, &chunks).unwrap();
    let Rig::Memory { disk, .. } = &rig else {
        unreachable!("made above");
    };
    disk.set_faults(store::Faults {
        syncs_before_failure: Some(0),
        ..store::Faults::default()
    });
    let refused = sealed.switch();
    assert!(
        matches!(refused, Err(InstallError::Write(_))),
        "{refused:?}"
    );
    drop(store);
    disk.set_faults(store::Faults::default());
    // No batch that was not synced survives with this seed.
    disk.lose_power(0);
    assert_old(&rig.restart());
}

#[test]
fn a_checkpoint_that_is_given_up_leaves_the_old_state() {
    both_disks(|mut rig| {
        let leader = leader(&Rig::memory());
        let chunks = export(&leader, GROUP);
        let store = follower(&rig);
        let mut given_up = store.install(GROUP, &chunks[0]).unwrap();
        given_up.add(&chunks[1]).unwrap();
        drop(given_up);
        assert_old(&store);
        drop(install(&store, GROUP, &chunks).unwrap());
        assert_old(&store);
        let store = rig.crash(store);
        assert_old(&store);
        install(&store, GROUP, &chunks).unwrap().switch().unwrap();
        assert_new(&store, &leader);
    });
}

#[test]
fn what_was_not_sent_is_refused() {
    let leader = leader(&Rig::memory());
    let chunks = export(&leader, GROUP);
    let store = follower(&Rig::memory());
    let bad = |refused: Result<_, InstallError>| match refused {
        Err(InstallError::BadChunk { bad, .. }) => bad,
        Err(error) => panic!("{error}"),
        Ok(()) => panic!("was accepted"),
    };
    let begin = || store.install(GROUP, &chunks[0]).unwrap();

    let mut flipped = chunks[1].to_vec();
    let middle = flipped.len() / 2;
    flipped[middle] ^= 1;
    assert_eq!(bad(begin().add(&flipped)), BadChunk::Corrupt);
    assert_eq!(bad(begin().add(&chunks[1][..100])), BadChunk::Corrupt);
    assert_eq!(bad(begin().add(&chunks[2])), BadChunk::OutOfOrder);
    let other = store.install(OTHER, &chunks[0]).map(drop);
    assert_eq!(bad(other), BadChunk::OutOfOrder);
    let second = store.install(GROUP, &chunks[1]).map(drop);
    assert_eq!(bad(second), BadChunk::OutOfOrder);
    let early = install(&store, GROUP, &chunks[..chunks.len() - 1]).map(drop);
    assert!(matches!(early, Err(InstallError::Incomplete(_))));
    assert_old(&store);
}

#[test]
fn one_at_a_time_and_only_forwards() {
    let leader = leader(&Rig::memory());
    let chunks = export(&leader, GROUP);
    let store = follower(&Rig::memory());
    let first = store.install(GROUP, &chunks[0]).unwrap();
    let second = store.install(GROUP, &chunks[0]).map(drop);
    assert!(matches!(second, Err(InstallError::Busy(_))), "{second:?}");
    drop(first);
    install(&store, GROUP, &chunks).unwrap().switch().unwrap();
    let again = store.install(GROUP, &chunks[0]).map(drop);
    assert!(matches!(again, Err(InstallError::NotNewer { .. })));
    let own = leader.install(GROUP, &chunks[0]).map(drop);
    assert!(matches!(own, Err(InstallError::NotNewer { .. })));
}

#[test]
fn a_state_that_came_as_far_meanwhile_is_kept() {
    let leader = leader(&Rig::memory());
    let store = follower(&Rig::memory());
    let sealed = install(&store, GROUP, &export(&leader, GROUP)).unwrap();
    append(&store, GROUP, sent(5..LAST + 1));
    let writes = rows(&[(b"\x01row", Some("by log"))]);
    store.write_state(GROUP, applied(3, LAST), writes).unwrap();
    let refused = sealed.switch();
    assert!(matches!(refused, Err(InstallError::NotNewer { .. })));
    let view = store.view(GROUP).unwrap();
    assert_eq!(view.get(b"\x01row").unwrap().unwrap(), "by log");
}

#[test]
fn writes_go_on_while_a_checkpoint_leaves() {
    both_disks(|rig| {
        let leader = leader(&rig);
        let before = leader.digest(GROUP, refers).unwrap();
        let mut chunks: Vec<Bytes> = Vec::new();
        let mut next = LAST + 1;
        let send = &mut |chunk| {
            chunks.push(chunk);
            append(&leader, GROUP, entries(3, next..next + 1));
            append(&leader, OTHER, entries(1, next..next + 1));
            // Payloads that the checkpoint refers to go from the disk.
            let mut writes: Writes = rows(&[(b"\x05row", None), (b"\x06row", Some("later"))]);
            writes.extend(REFERRED.map(|index| (vec![3, index as u8], None)));
            writes.extend(REFERRED.iter().flat_map(|index| garbage(place(*index))));
            leader.write_state(GROUP, applied(3, next), writes).unwrap();
            leader.flush_state().unwrap();
            purge(&leader, GROUP, 3, next);
            leader.flush_state().unwrap();
            next += 1;
            true
        };
        let ends = leader.export(GROUP, refers, send).unwrap();
        assert_eq!(ends, Some(applied(3, LAST).at));
        let store = Rig::memory().first_start();
        install(&store, GROUP, &chunks).unwrap().switch().unwrap();
        assert_eq!(store.digest(GROUP, refers).unwrap(), before);
        assert_ne!(leader.digest(GROUP, refers).unwrap(), before);
    });
}

#[test]
fn other_groups_are_written_while_one_is_installed() {
    both_disks(|mut rig| {
        let leader = leader(&Rig::memory());
        let chunks = export(&leader, GROUP);
        let store = follower(&rig);
        let mut install = store.install(GROUP, &chunks[0]).unwrap();
        for (index, chunk) in (0..).zip(&chunks[1..]) {
            install.add(chunk).unwrap();
            append(&store, OTHER, entries(1, index..index + 1));
            let writes = rows(&[(b"\x01row", Some("other group"))]);
            store.write_state(OTHER, applied(1, index), writes).unwrap();
        }
        install.seal().unwrap().switch().unwrap();
        let store = rig.crash(store);
        assert_new(&store, &leader);
        let count = chunks.len() as u64 - 1;
        assert_eq!(whole_log(&store, OTHER), entries(1, 0..count));
    });
}

/// The log of a follower with five applied entries and `tail` behind them.
fn with_tail(tail: Vec<LogEntry>) -> (Rig, Store) {
    let rig = Rig::memory();
    let store = follower(&rig);
    append(&store, GROUP, tail);
    (rig, store)
}

#[test]
fn entries_that_continue_the_checkpoint_stay() {
    let leader = leader(&Rig::memory());
    let (mut rig, store) = with_tail(sent(5..LAST + 4));
    let sealed = install(&store, GROUP, &export(&leader, GROUP)).unwrap();
    sealed.switch().unwrap();
    let store = rig.crash(store);
    assert_new(&store, &leader);
    // With their payloads.
    assert!(whole_log(&store, GROUP) == sent(LAST + 1..LAST + 4));
}

#[test]
fn entries_of_another_leader_go_with_their_payloads() {
    let leader = leader(&Rig::memory());
    let (mut rig, store) = with_tail(entries(2, 5..LAST + 4));
    let sealed = install(&store, GROUP, &export(&leader, GROUP)).unwrap();
    sealed.switch().unwrap();
    let store = rig.crash(store);
    assert_new(&store, &leader);
    assert!(whole_log(&store, GROUP).is_empty());
    let view = store.view(GROUP).unwrap();
    for index in 5..LAST + 4 {
        let gone = view.payload(at(2, index, 0));
        assert!(matches!(gone, Err(Fault::Missing(_))), "{index}: {gone:?}");
    }
}

#[test]
fn cutting_the_log_takes_no_payload_from_a_checkpoint_that_comes_in() {
    let leader = leader(&Rig::memory());
    let (mut rig, store) = with_tail(sent(5..LAST + 4));
    let sealed = install(&store, GROUP, &export(&leader, GROUP)).unwrap();
    truncate_after(&store, GROUP, 4);
    sealed.switch().unwrap();
    let store = rig.crash(store);
    assert_new(&store, &leader);
}

#[test]
fn a_walk_over_rows_goes_on_in_the_new_state() {
    let leader = leader(&Rig::memory());
    let store = follower(&Rig::memory());
    let view = store.view(GROUP).unwrap();
    let mut walk = view.scan(&[0], &[9]);
    let (key, value) = walk.next().unwrap().unwrap();
    assert_eq!((&key[..], &value[..]), (&b"\x01row"[..], &b"old"[..]));
    let sealed = install(&store, GROUP, &export(&leader, GROUP)).unwrap();
    sealed.switch().unwrap();
    let rest: Vec<_> = walk.collect::<Result<_, _>>().unwrap();
    let new = scan(&leader.view(GROUP).unwrap(), &[1, 255], &[9]);
    assert_eq!(rest, new);
}

#[test]
fn nothing_is_sent_of_a_group_without_a_state() {
    let store = Rig::memory().first_start();
    let send = &mut |_| panic!("there is nothing to send");
    assert_eq!(store.export(GROUP, refers, send).unwrap(), None);
    assert_eq!(store.digest(GroupId::Control, refers).unwrap(), None);
}

#[test]
fn a_reader_who_leaves_ends_the_walk() {
    let leader = leader(&Rig::memory());
    let mut count = 0;
    let send = &mut |_| {
        count += 1;
        count < 2
    };
    let ends = leader.export(GROUP, refers, send).unwrap();
    assert_eq!(ends, Some(applied(3, LAST).at));
    assert_eq!(count, 2);
}

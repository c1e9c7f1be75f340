//! What any store promises, whatever disk it is on.

mod rig;

use std::sync::{Arc, Mutex};

use bytes::Bytes;
use engine::Fault;
use engine::kv::View;
use model::GroupId;
use rig::*;
use store::{LogBounds, OpenError, Payloads, Position, Start};

macro_rules! on_both_disks {
    ($($name:ident),* $(,)?) => {
        mod rocks {
            $(#[test] fn $name() { super::$name(super::Rig::rocks()); })*
        }
        mod memory {
            $(#[test] fn $name() { super::$name(super::Rig::memory()); })*
        }
    };
}

on_both_disks!(
    an_entry_can_be_read_when_append_returns,
    what_was_done_survives_a_crash,
    a_read_stops_at_its_limit,
    a_read_can_leave_payloads_out,
    a_read_outside_the_log_is_empty,
    a_small_cache_changes_nothing,
    a_cut_log_goes_on_from_there,
    a_cut_takes_the_payloads_along,
    a_purged_log_begins_behind_its_mark,
    purges_that_delete_nothing_yet_hide_all_the_same,
    payloads_outlive_their_entries,
    rows_are_read_as_written,
    a_long_scan_is_complete,
    groups_do_not_see_each_other,
    unflushed_state_goes_back_to_the_flush,
    much_state_is_flushed_by_itself,
    garbage_goes_after_the_flush,
    an_entry_keeps_its_payloads_until_it_is_purged,
    garbage_of_an_earlier_life_goes_too,
    writes_of_a_group_are_done_in_order,
    a_full_queue_waits_and_loses_nothing,
    the_last_handle_may_go_when_a_write_is_done,
    a_disk_is_one_store_s_at_a_time,
    an_empty_disk_is_no_node,
    a_node_s_disk_is_not_made_new,
);

fn an_entry_can_be_read_when_append_returns(rig: Rig) {
    let store = rig.first_start();
    let log = vec![entry(1, 0, &[]), entry(1, 1, &["a", "b"])];
    store.append(GROUP, log.clone(), Box::new(|_| {}));
    assert_eq!(whole_log(&store, GROUP), log);
    let last = Some(Position { term: 1, index: 1 });
    let bounds = LogBounds { purged: None, last };
    assert_eq!(store.log_bounds(GROUP), Ok(bounds));
}

fn what_was_done_survives_a_crash(mut rig: Rig) {
    let store = rig.first_start();
    store.save_committed(GROUP, Position { term: 1, index: 2 });
    append(&store, GROUP, entries(1, 0..4));
    wait_for(|done| store.save_vote(GROUP, Bytes::from_static(b"vote"), done)).unwrap();
    let store = rig.crash(store);
    assert_eq!(whole_log(&store, GROUP), entries(1, 0..4));
    assert_eq!(store.vote(GROUP).unwrap().unwrap(), "vote");
    let committed = Position { term: 1, index: 2 };
    assert_eq!(store.committed(GROUP), Ok(Some(committed)));
    assert_eq!(store.identity(), &identity());
}

fn a_read_stops_at_its_limit(mut rig: Rig) {
    let store = rig.first_start();
    append(&store, GROUP, entries(1, 0..6));
    let weight = entries(1, 0..1)[0].weight();
    let read = |store: &store::Store, bytes| {
        let read = store.read_log(GROUP, 1..6, bytes, Payloads::Joined);
        read.unwrap().len()
    };
    let expected = [(0, 1), (weight, 1), (3 * weight, 3), (4 * weight - 1, 3)];
    for (bytes, count) in expected {
        assert_eq!(read(&store, bytes), count, "{bytes} bytes, from memory");
    }
    let store = rig.crash(store);
    for (bytes, count) in expected {
        assert_eq!(read(&store, bytes), count, "{bytes} bytes, from disk");
    }
}

fn a_read_can_leave_payloads_out(mut rig: Rig) {
    let store = rig.first_start();
    append(&store, GROUP, vec![entry(1, 0, &["a"])]);
    let bare = vec![entry(1, 0, &[])];
    let read = |store: &store::Store| {
        let read = store.read_log(GROUP, 0..1, usize::MAX, Payloads::LeftOut);
        read.unwrap()
    };
    assert_eq!(read(&store), bare);
    assert_eq!(read(&rig.crash(store)), bare);
}

fn a_read_outside_the_log_is_empty(rig: Rig) {
    let store = rig.first_start();
    let read = |range| {
        let read = store.read_log(GROUP, range, usize::MAX, Payloads::Joined);
        read.unwrap().len()
    };
    assert_eq!(read(0..10), 0);
    append(&store, GROUP, entries(1, 0..3));
    assert_eq!((read(3..9), read(2..9), read(1..1)), (0, 1, 0));
}

fn a_small_cache_changes_nothing(mut rig: Rig) {
    rig.limits().log_cache_bytes = 100;
    rig.limits().payload_cache_bytes = 100;
    rig.limits().batch_bytes = 100;
    let store = rig.first_start();
    for index in 0..50 {
        append(&store, GROUP, entries(1, index..index + 1));
        append(&store, OTHER, entries(2, index..index + 1));
    }
    assert_eq!(whole_log(&store, GROUP), entries(1, 0..50));
    assert_eq!(whole_log(&store, OTHER), entries(2, 0..50));
}

fn a_cut_log_goes_on_from_there(mut rig: Rig) {
    let store = rig.first_start();
    append(&store, GROUP, entries(1, 0..5));
    truncate_after(&store, GROUP, 2);
    append(&store, GROUP, entries(2, 3..4));
    let expected = [entries(1, 0..3), entries(2, 3..4)].concat();
    assert_eq!(whole_log(&store, GROUP), expected);
    let store = rig.crash(store);
    assert_eq!(whole_log(&store, GROUP), expected);
    truncate_after(&store, GROUP, 0);
    assert_eq!(whole_log(&store, GROUP), entries(1, 0..1));
    let store = rig.crash(store);
    assert_eq!(whole_log(&store, GROUP), entries(1, 0..1));
}

fn a_cut_takes_the_payloads_along(mut rig: Rig) {
    let store = rig.first_start();
    append(
        &store,
        GROUP,
        vec![entry(1, 0, &["a"]), entry(1, 1, &["b", "c"])],
    );
    truncate_after(&store, GROUP, 0);
    let check = |store: &store::Store| {
        let view = store.view(GROUP).unwrap();
        assert_eq!(view.payload(at(1, 0, 0)), Ok(payload("a")));
        for number in 0..2 {
            let gone = view.payload(at(1, 1, number));
            assert!(matches!(gone, Err(Fault::Missing(_))), "{gone:?}");
        }
    };
    check(&store);
    check(&rig.crash(store));
}

fn a_purged_log_begins_behind_its_mark(mut rig: Rig) {
    rig.limits().purge_bytes = 0;
    let store = rig.first_start();
    append(&store, GROUP, entries(1, 0..6));
    append(&store, OTHER, entries(1, 0..6));
    store.write_state(GROUP, applied(1, 3), rows(&[])).unwrap();
    store.flush_state().unwrap();
    purge(&store, GROUP, 1, 1);
    purge(&store, GROUP, 1, 3);
    let bounds = LogBounds {
        purged: Some(Position { term: 1, index: 3 }),
        last: Some(Position { term: 1, index: 5 }),
    };
    let check = |store: &store::Store| {
        assert_eq!(whole_log(store, GROUP), entries(1, 4..6));
        assert_eq!(whole_log(store, OTHER), entries(1, 0..6));
        assert_eq!(store.log_bounds(GROUP), Ok(bounds));
    };
    check(&store);
    check(&rig.crash(store));
}

fn purges_that_delete_nothing_yet_hide_all_the_same(mut rig: Rig) {
    rig.limits().purge_bytes = u64::MAX;
    let store = rig.first_start();
    append(&store, GROUP, entries(1, 0..6));
    store.write_state(GROUP, applied(1, 5), rows(&[])).unwrap();
    store.flush_state().unwrap();
    for index in 0..=5 {
        purge(&store, GROUP, 1, index);
        assert_eq!(whole_log(&store, GROUP), entries(1, index + 1..6));
    }
    let store = rig.crash(store);
    assert_eq!(whole_log(&store, GROUP), []);
    append(&store, GROUP, entries(2, 6..7));
    let store = rig.crash(store);
    assert_eq!(whole_log(&store, GROUP), entries(2, 6..7));
}

fn payloads_outlive_their_entries(mut rig: Rig) {
    rig.limits().purge_bytes = 0;
    let store = rig.first_start();
    append(&store, GROUP, vec![entry(1, 0, &["a"])]);
    store.write_state(GROUP, applied(1, 0), rows(&[])).unwrap();
    store.flush_state().unwrap();
    purge(&store, GROUP, 1, 0);
    let store = rig.crash(store);
    let view = store.view(GROUP).unwrap();
    assert_eq!(view.payload(at(1, 0, 0)), Ok(payload("a")));
}

fn rows_are_read_as_written(rig: Rig) {
    let store = rig.first_start();
    let view = store.view(GROUP).unwrap();
    let first = rows(&[
        (b"\x01a", Some("1")),
        (b"\x01b", Some("2")),
        (b"\x02", Some("3")),
    ]);
    append(&store, GROUP, entries(1, 0..2));
    store.write_state(GROUP, applied(1, 0), first).unwrap();
    let second = rows(&[(b"\x01a", None), (b"\x01c", Some("4"))]);
    store.write_state(GROUP, applied(1, 1), second).unwrap();

    assert_eq!(view.get(b"\x01a"), Ok(None));
    assert_eq!(view.get(b"\x01b").unwrap().unwrap(), "2");
    let row = |key: &[u8], value: &'static str| (key.to_vec(), Bytes::from(value));
    let (b, c) = (row(b"\x01b", "2"), row(b"\x01c", "4"));
    assert_eq!(scan(&view, b"\x01", b"\x02"), [b.clone(), c.clone()]);
    assert_eq!(scan(&view, b"\x01c", b"\x01b"), []);
    assert_eq!(view.floor(b"\x01", b"\x01z"), Ok(Some(c)));
    assert_eq!(view.floor(b"\x01", b"\x01b"), Ok(Some(b)));
    assert_eq!(view.floor(b"\x01", b"\x01a"), Ok(None));
    assert_eq!(view.floor(b"\x02", b"\x01"), Ok(None));
    assert_eq!(store.applied(GROUP), Ok(Some(applied(1, 1))));
}

fn a_long_scan_is_complete(rig: Rig) {
    let store = rig.first_start();
    let keys: Vec<[u8; 3]> = (0..5_000_u16)
        .map(|number| [1, number.to_be_bytes()[0], number.to_be_bytes()[1]])
        .collect();
    let written: Vec<(&[u8], Option<&str>)> =
        keys.iter().map(|key| (&key[..], Some("row"))).collect();
    append(&store, GROUP, entries(1, 0..1));
    store
        .write_state(GROUP, applied(1, 0), rows(&written))
        .unwrap();
    let view = store.view(GROUP).unwrap();
    let found: Vec<Vec<u8>> = scan(&view, &[1], &[2])
        .into_iter()
        .map(|(key, _)| key)
        .collect();
    assert_eq!(found, keys);
}

fn groups_do_not_see_each_other(mut rig: Rig) {
    let store = rig.first_start();
    let groups = [GroupId::Control, GROUP, OTHER];
    for (term, group) in (1..).zip(groups) {
        append(&store, group, entries(term, 0..3));
        let value = term.to_string();
        let written = rows(&[(b"\x01key", Some(&value))]);
        store.write_state(group, applied(term, 2), written).unwrap();
    }
    truncate_after(&store, GROUP, 2);
    store.flush_state().unwrap();
    let store = rig.crash(store);
    for (term, group) in (1..).zip(groups) {
        assert_eq!(whole_log(&store, group), entries(term, 0..3));
        let view = store.view(group).unwrap();
        let row = (b"\x01key".to_vec(), Bytes::from(term.to_string()));
        assert_eq!(scan(&view, &[], &[255]), vec![row.clone()]);
        assert_eq!(view.floor(&[], &[255]), Ok(Some(row)));
    }
    assert_eq!(store.groups(), Ok(groups.to_vec()));
}

fn unflushed_state_goes_back_to_the_flush(mut rig: Rig) {
    let store = rig.first_start();
    append(&store, GROUP, entries(1, 0..3));
    let write = |store: &store::Store, index, value| {
        let written = rows(&[(b"\x01key", Some(value))]);
        store
            .write_state(GROUP, applied(1, index), written)
            .unwrap();
    };
    assert_eq!(store.flushed_applied(GROUP), Ok(None));
    write(&store, 0, "flushed");
    store.flush_state().unwrap();
    write(&store, 1, "lost");
    let flushed = Position { term: 1, index: 0 };
    assert_eq!(store.flushed_applied(GROUP), Ok(Some(flushed)));
    let store = rig.crash(store);
    assert_eq!(store.applied(GROUP), Ok(Some(applied(1, 0))));
    assert_eq!(store.flushed_applied(GROUP), Ok(Some(flushed)));
    let view = store.view(GROUP).unwrap();
    assert_eq!(view.get(b"\x01key").unwrap().unwrap(), "flushed");
    assert_eq!(whole_log(&store, GROUP), entries(1, 0..3));
    write(&store, 1, "again");
    assert_eq!(view.get(b"\x01key").unwrap().unwrap(), "again");
}

fn much_state_is_flushed_by_itself(mut rig: Rig) {
    rig.limits().flush_bytes = 1_000;
    let store = rig.first_start();
    append(&store, GROUP, entries(1, 0..1));
    let much = "x".repeat(1_000);
    let written = rows(&[(b"\x01key", Some(&much))]);
    store.write_state(GROUP, applied(1, 0), written).unwrap();
    let flushed = Some(Position { term: 1, index: 0 });
    wait_until("the flush", || {
        store.flushed_applied(GROUP).unwrap() == flushed
    });
}

fn garbage_goes_after_the_flush(mut rig: Rig) {
    rig.limits().payload_cache_bytes = 0;
    let store = rig.first_start();
    append(
        &store,
        GROUP,
        vec![entry(1, 0, &["a", "b"]), entry(1, 1, &[])],
    );
    store.write_state(GROUP, applied(1, 0), rows(&[])).unwrap();
    store.flush_state().unwrap();
    purge(&store, GROUP, 1, 0);
    store
        .write_state(GROUP, applied(1, 1), garbage(at(1, 0, 1)))
        .unwrap();
    let view = store.view(GROUP).unwrap();
    assert_eq!(
        view.payload(at(1, 0, 1)),
        Ok(payload("b")),
        "not flushed yet"
    );
    store.flush_state().unwrap();
    assert!(matches!(view.payload(at(1, 0, 1)), Err(Fault::Missing(_))));
    assert_eq!(view.payload(at(1, 0, 0)), Ok(payload("a")));
    assert_eq!(
        scan(&view, &[11], &[12]),
        [],
        "the row goes with its payload"
    );
}

fn an_entry_keeps_its_payloads_until_it_is_purged(mut rig: Rig) {
    rig.limits().payload_cache_bytes = 0;
    let store = rig.first_start();
    append(&store, GROUP, entries(1, 0..3));
    store
        .write_state(GROUP, applied(1, 2), garbage(at(1, 1, 0)))
        .unwrap();
    store.flush_state().unwrap();
    let store = rig.crash(store);
    store.flush_state().unwrap();
    assert_eq!(
        whole_log(&store, GROUP),
        entries(1, 0..3),
        "for a replica that lags"
    );
    purge(&store, GROUP, 1, 1);
    store.flush_state().unwrap();
    let view = store.view(GROUP).unwrap();
    assert!(matches!(view.payload(at(1, 1, 0)), Err(Fault::Missing(_))));
    assert_eq!(whole_log(&store, GROUP), entries(1, 2..3));
}

fn garbage_of_an_earlier_life_goes_too(mut rig: Rig) {
    rig.limits().payload_cache_bytes = 0;
    let store = rig.first_start();
    append(&store, GROUP, vec![entry(1, 0, &["a", "b"])]);
    store
        .write_state(GROUP, applied(1, 0), garbage(at(1, 0, 1)))
        .unwrap();
    store.flush_state().unwrap();
    purge(&store, GROUP, 1, 0);
    store.flush_state().unwrap();
    // The state forgets that the row went, and maybe that the payload did.
    let store = rig.crash(store);
    let view = store.view(GROUP).unwrap();
    store.flush_state().unwrap();
    assert!(matches!(view.payload(at(1, 0, 1)), Err(Fault::Missing(_))));
    assert_eq!(view.payload(at(1, 0, 0)), Ok(payload("a")));
    assert_eq!(scan(&view, &[11], &[12]), []);
}

fn writes_of_a_group_are_done_in_order(rig: Rig) {
    let store = rig.first_start();
    let order = Arc::new(Mutex::new(Vec::new()));
    let note = |number: u64| -> store::Done {
        let order = order.clone();
        Box::new(move |outcome| {
            outcome.expect("a sound disk writes");
            order.lock().unwrap().push(number);
        })
    };
    for index in 0..200 {
        store.append(GROUP, entries(1, index..index + 1), note(index));
    }
    store.truncate_after(GROUP, 100, note(200));
    wait_until("the last write", || order.lock().unwrap().len() == 201);
    assert_eq!(*order.lock().unwrap(), (0..=200).collect::<Vec<_>>());
}

fn a_full_queue_waits_and_loses_nothing(mut rig: Rig) {
    rig.limits().queue_bytes = 100;
    rig.limits().batch_bytes = 300;
    let store = rig.first_start();
    for index in 0..300 {
        store.append(GROUP, entries(1, index..index + 1), Box::new(|_| {}));
    }
    append(&store, GROUP, entries(1, 300..301));
    let store = rig.crash(store);
    assert_eq!(whole_log(&store, GROUP), entries(1, 0..301));
}

fn the_last_handle_may_go_when_a_write_is_done(rig: Rig) {
    let store = rig.first_start();
    let last = store.clone();
    store.append(GROUP, entries(1, 0..1), Box::new(move |_| drop(last)));
    drop(store);
    let mut reopened = None;
    wait_until("the end of the store", || {
        reopened = rig.open(Start::Existing).ok();
        reopened.is_some()
    });
    let reopened = reopened.expect("it was waited for");
    assert_eq!(whole_log(&reopened, GROUP), entries(1, 0..1));
}

fn a_disk_is_one_store_s_at_a_time(rig: Rig) {
    let store = rig.first_start();
    let second = rig.open(Start::Existing).err().expect("it is in use");
    assert!(matches!(second, OpenError::InUse { .. }), "{second}");
    drop(store);
    rig.restart();
}

fn an_empty_disk_is_no_node(rig: Rig) {
    let empty = rig.open(Start::Existing).err().expect("it is empty");
    assert!(matches!(empty, OpenError::Empty { .. }), "{empty}");
    rig.first_start();
}

fn a_node_s_disk_is_not_made_new(rig: Rig) {
    let store = rig.first_start();
    append(&store, GROUP, entries(1, 0..1));
    drop(store);
    let occupied = rig.open(Start::New(identity())).err();
    let occupied = occupied.expect("it has a node");
    assert!(
        matches!(occupied, OpenError::Occupied { node: 7, .. }),
        "{occupied}"
    );
    assert_eq!(whole_log(&rig.restart(), GROUP), entries(1, 0..1));
}

#[test]
#[should_panic(expected = "don't follow the last one")]
fn a_gap_in_the_log_is_refused() {
    let store = Rig::memory().first_start();
    append(&store, GROUP, entries(1, 0..1));
    append(&store, GROUP, entries(1, 2..3));
}

#[test]
#[should_panic(expected = "the state on disk has only")]
fn a_purge_beyond_the_flushed_state_is_refused() {
    let store = Rig::memory().first_start();
    append(&store, GROUP, entries(1, 0..2));
    store.write_state(GROUP, applied(1, 1), rows(&[])).unwrap();
    purge(&store, GROUP, 1, 1);
}

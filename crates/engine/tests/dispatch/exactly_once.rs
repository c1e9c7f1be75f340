//! Exactly-once: one live lease per message, over leaders; nothing after a successful ack.

use std::time::Duration;

use engine::dispatch::{AckReply, Delivered, ModifyReply};
use engine::subscription::SubscriptionSettings;

use crate::bench::{Bench, Credit, PLENTY, data, key, settings};

fn exactly_once(ordered: bool) -> SubscriptionSettings {
    SubscriptionSettings {
        exactly_once: true,
        ..settings(ordered)
    }
}

#[test]
fn an_ack_after_the_deadline_is_stale_and_the_message_comes_again() {
    let mut bench = Bench::new(exactly_once(false));
    let stream = bench.stream(PLENTY);
    bench.publish("", &["a"]);
    let first = bench.take(stream);
    bench.pass_seconds(9);
    assert!(bench.take(stream).is_empty());
    bench.pass_seconds(2);
    let second = bench.take(stream);
    assert_eq!(second.len(), 1);
    assert_eq!(bench.ack(&first), [AckReply::Stale]);
    assert_eq!(bench.ack(&second), [AckReply::Acknowledged]);
    assert_eq!(bench.ack(&second), [AckReply::Acknowledged], "repeated");
    bench.pass_seconds(100);
    assert!(bench.take(stream).is_empty());
    assert_eq!(bench.credit(stream).messages, PLENTY.messages);
}

#[test]
fn a_receipt_keeps_the_lease_and_a_stale_one_is_told() {
    let mut bench = Bench::new(exactly_once(false));
    let stream = bench.stream(PLENTY);
    bench.publish("", &["a"]);
    let first = bench.take(stream);
    bench.pass_seconds(5);
    assert_eq!(bench.modify(&first, 30), [ModifyReply::Modified]);
    bench.pass_seconds(29);
    assert!(bench.take(stream).is_empty());
    bench.pass_seconds(2);
    assert_eq!(bench.take(stream).len(), 1);
    assert_eq!(bench.modify(&first, 30), [ModifyReply::Stale]);
    assert_eq!(bench.nack(&first), [ModifyReply::Stale]);
}

#[test]
fn a_nack_brings_the_message_back_at_once() {
    let mut bench = Bench::new(exactly_once(false));
    let stream = bench.stream(PLENTY);
    bench.publish("", &["a"]);
    let first = bench.take(stream);
    assert_eq!(bench.nack(&first), [ModifyReply::Modified]);
    assert_eq!(bench.texts(stream), ["a"]);
    assert_eq!(bench.ack(&first), [AckReply::Stale]);
}

#[test]
fn leases_outlive_their_leader_and_run_again_in_full() {
    let mut bench = Bench::new(exactly_once(false));
    let stream = bench.stream(PLENTY);
    bench.publish("", &["a", "b"]);
    let first = bench.take(stream);
    bench.pass_seconds(8);
    bench.change_leader();
    let stream = bench.come_back(stream);
    bench.pass_seconds(9);
    assert!(bench.take(stream).is_empty());
    assert_eq!(bench.ack(&first[..1]), [AckReply::Acknowledged]);
    bench.pass_seconds(2);
    assert_eq!(bench.texts(stream), ["b"]);
    assert_eq!(bench.ack(&first[1..]), [AckReply::Stale]);
}

#[test]
fn a_stream_that_does_not_come_back_may_live_on_out_of_reach() {
    let mut bench = Bench::new(exactly_once(true));
    let away = bench.stream(PLENTY);
    bench.publish("k", &["1"]);
    let first = bench.take(away);
    bench.change_leader();
    let other = bench.stream(PLENTY);
    bench.publish("k", &["2"]);
    bench.pass(Duration::from_millis(9_999));
    assert!(bench.take(other).is_empty(), "its client may have it");
    bench.pass_seconds(1);
    assert_eq!(bench.texts(other), ["1", "2"]);
    assert_eq!(bench.ack(&first), [AckReply::Stale]);
}

#[test]
fn a_stream_whose_way_is_lost_keeps_its_leases_and_one_that_ends_does_not() {
    let mut bench = Bench::new(exactly_once(true));
    let lost = bench.stream(PLENTY);
    bench.publish("lost", &["1"]);
    assert_eq!(bench.take(lost).len(), 1);
    bench.lose(lost);
    let ended = bench.stream(PLENTY);
    bench.publish("ended", &["2"]);
    assert_eq!(bench.take(ended).len(), 1);
    bench.close(ended);
    let other = bench.stream(PLENTY);
    bench.pass_seconds(6);
    assert_eq!(bench.texts(other), ["2"]);
    bench.pass_seconds(3);
    assert!(bench.take(other).is_empty(), "nine seconds are not ten");
    bench.pass_seconds(2);
    assert_eq!(bench.texts(other), ["1"]);
}

#[test]
fn what_a_process_had_is_released_soon_after_its_end_is_known() {
    let mut bench = Bench::new(exactly_once(true));
    let gone = bench.stream(PLENTY);
    bench.publish("confirmed", &["1"]);
    bench.publish("unconfirmed", &["1"]);
    let (unconfirmed, confirmed): (Vec<_>, Vec<_>) = bench
        .take(gone)
        .into_iter()
        .partition(|delivery| delivery.ack.key == key("unconfirmed"));
    bench.modify(&confirmed, 30);
    bench.change_leader();
    bench.end_process();
    let other = bench.stream(PLENTY);
    bench.publish("confirmed", &["2"]);
    bench.publish("unconfirmed", &["2"]);
    bench.pass(Duration::from_millis(4_999));
    assert!(bench.take(other).is_empty());
    bench.pass_seconds(1);
    let again = bench.take(other);
    let of_unconfirmed = |delivery: &Delivered| delivery.ack.key == key("unconfirmed");
    assert!(again.iter().all(of_unconfirmed), "{again:?}");
    assert_eq!(again.len(), 2);
    assert_eq!(bench.ack(&unconfirmed), [AckReply::Stale]);
    assert_eq!(bench.ack(&again), [AckReply::Acknowledged; 2]);
    bench.pass_seconds(23);
    let came = bench.take(other);
    assert!(came.is_empty(), "its client had it, and said so");
    bench.pass_seconds(2);
    assert_eq!(bench.texts(other), ["1", "2"]);
}

#[test]
fn the_end_of_a_process_reaches_its_open_and_its_lost_streams() {
    let mut bench = Bench::new(exactly_once(true));
    let open = bench.stream(PLENTY);
    let lost = bench.stream(PLENTY);
    for number in 0..8 {
        bench.publish(&format!("k{number}"), &["1"]);
    }
    let had = bench.take(open).len() + bench.take(lost).len();
    assert_eq!(had, 8);
    bench.lose(lost);
    bench.end_process();
    let other = bench.stream(PLENTY);
    bench.pass_seconds(6);
    let again = bench.take(other);
    assert_eq!(again.len(), 8);
    assert_eq!(bench.ack(&again), [AckReply::Acknowledged; 8]);
    bench.publish("k0", &["2"]);
    assert_eq!(bench.texts(other), ["2"], "what began later goes on");
}

#[test]
fn what_a_stream_has_counts_where_it_comes_back() {
    let three = Credit {
        messages: 3,
        ..PLENTY
    };
    let mut bench = Bench::new(exactly_once(false));
    let stream = bench.stream(three);
    bench.publish("", &["a", "b"]);
    let first = bench.take(stream);
    bench.modify(&first[..1], 30);
    bench.change_leader();
    let stream = bench.come_back(stream);
    bench.publish("", &["c", "d", "e"]);
    assert_eq!(bench.texts(stream), ["c"], "two of three are out already");
    assert_eq!(bench.ack(&first), [AckReply::Acknowledged; 2]);
    assert_eq!(bench.texts(stream), ["d", "e"], "their credit is back");
    bench.pass_seconds(10);
    assert_eq!(bench.texts(stream), ["c", "d", "e"]);
}

#[test]
fn what_never_arrived_at_a_stream_that_comes_back_is_sent_at_once() {
    let mut bench = Bench::new(exactly_once(true));
    let stream = bench.stream(PLENTY);
    bench.publish("k", &["1"]);
    let arrived = bench.take(stream);
    bench.hold_log = true;
    bench.publish("k", &["2"]);
    assert!(bench.apply_entry() && bench.tell_outcomes(), "2 is stored");
    assert!(
        bench.apply_entry(),
        "its lease is in the log, and it is not sent"
    );
    bench.change_leader();
    bench.hold_log = false;
    let stream = bench.come_back(stream);
    assert!(bench.take(stream).is_empty(), "1 is with the client");
    assert_eq!(bench.ack(&arrived), [AckReply::Acknowledged]);
    assert_eq!(bench.texts(stream), ["2"]);
}

#[test]
fn acks_of_a_key_come_in_order_but_one_call_may_list_them_in_any() {
    let mut bench = Bench::new(exactly_once(true));
    let stream = bench.stream(PLENTY);
    bench.publish("k", &["1", "2", "3"]);
    let received = bench.take(stream);
    assert_eq!(bench.ack(&received[1..2]), [AckReply::Unordered]);
    let mut backwards = received.clone();
    backwards.reverse();
    assert_eq!(bench.ack(&backwards), [AckReply::Acknowledged; 3]);
}

#[test]
fn a_nacked_message_of_a_key_comes_alone_while_the_later_ones_are_leased() {
    let mut bench = Bench::new(exactly_once(true));
    let stream = bench.stream(PLENTY);
    bench.publish("k", &["1", "2", "3"]);
    let received = bench.take(stream);
    bench.publish("k", &["4"]);
    let fourth = bench.take(stream);
    bench.nack(&received[..1]);
    let again = bench.take(stream);
    let texts: Vec<_> = again
        .iter()
        .map(|delivery| data(&delivery.message))
        .collect();
    assert_eq!(texts, ["1"]);
    assert_eq!(bench.ack(&again), [AckReply::Acknowledged]);
    assert_eq!(bench.ack(&received[1..]), [AckReply::Acknowledged; 2]);
    assert_eq!(bench.ack(&fourth), [AckReply::Acknowledged]);
    bench.publish("k", &["5"]);
    assert_eq!(bench.texts(stream), ["5"]);
}

#[test]
fn after_a_change_of_the_leader_a_key_waits_for_the_leases_in_front() {
    let mut bench = Bench::new(exactly_once(true));
    let stream = bench.stream(PLENTY);
    bench.publish("k", &["1", "2"]);
    let received = bench.take(stream);
    bench.change_leader();
    let stream = bench.stream(PLENTY);
    bench.publish("k", &["3"]);
    assert!(
        bench.take(stream).is_empty(),
        "1 and 2 may be with another client"
    );
    bench.ack(&received);
    assert_eq!(bench.texts(stream), ["3"]);
}

/// C3: a drained frontend, clients that acknowledge by other calls.
#[test]
fn no_key_waits_for_the_deadline_of_a_stream_that_ended() {
    let mut bench = Bench::new(exactly_once(true));
    let old = bench.stream(PLENTY);
    bench.publish("received", &["1"]);
    bench.publish("lost", &["1"]);
    let mut received = bench.take(old);
    received.sort_by_key(|delivery| delivery.ack.key);
    let (lost, confirmed) = received.split_at(1);
    bench.modify(confirmed, 120);
    let new = bench.stream(PLENTY);
    bench.close(old);
    bench.publish("received", &["2"]);
    bench.publish("lost", &["2"]);
    bench.pass_seconds(3);
    assert!(bench.take(new).is_empty(), "the client still works on them");
    assert_eq!(
        bench.ack(confirmed),
        [AckReply::Acknowledged],
        "ids outlive their stream"
    );
    assert_eq!(bench.texts(new), ["2"]);
    bench.pass_seconds(3);
    assert_eq!(
        bench.texts(new),
        ["1", "2"],
        "never confirmed, so released after five seconds"
    );
    assert_eq!(bench.ack(lost), [AckReply::Stale]);
}

#[test]
fn deliveries_that_were_logged_for_a_session_that_ended_come_again_at_once() {
    let mut bench = Bench::new(exactly_once(true));
    bench.publish("k", &["1", "2"]);
    bench.hold_log = true;
    let pull = bench.waiting_pull(10);
    bench.close(pull);
    bench.hold_log = false;
    bench.apply_log();
    let stream = bench.stream(PLENTY);
    assert_eq!(bench.texts(stream), ["1", "2"]);
}

#[test]
fn a_late_leader_does_not_give_a_second_lease() {
    let mut bench = Bench::new(exactly_once(false));
    bench.publish("", &["a"]);
    bench.hold_log = true;
    let pull = bench.waiting_pull(10);
    assert!(
        bench.apply_entry(),
        "the lease is in the log, the delivery was never sent"
    );
    bench.close(pull);
    bench.change_leader();
    bench.hold_log = false;
    let stream = bench.stream(PLENTY);
    assert!(bench.take(stream).is_empty());
    bench.pass_seconds(11);
    assert_eq!(bench.texts(stream), ["a"]);
}

#[test]
fn a_stream_whose_way_to_the_leader_broke_keeps_what_it_has() {
    let mut bench = Bench::new(exactly_once(false));
    let before = bench.stream(PLENTY);
    bench.publish("", &["a"]);
    let kept = bench.take(before);
    bench.close(before);
    bench.pass_seconds(4);
    let stream = bench.come_back(before);
    bench.pass_seconds(5);
    assert!(bench.take(stream).is_empty(), "nine seconds are not ten");
    assert_eq!(bench.ack(&kept), [AckReply::Acknowledged]);
}

//! Nacks, deadlines and back-offs.

use std::time::Duration;

use engine::dispatch::AckReply;
use engine::subscription::{RetryPolicy, SubscriptionSettings};

use crate::bench::{BACK_WITHIN, Bench, PLENTY, settings};

fn with_retry(ordered: bool) -> SubscriptionSettings {
    SubscriptionSettings {
        retry: Some(RetryPolicy {
            minimum: Duration::from_secs(10),
            maximum: Duration::from_secs(25),
        }),
        ..settings(ordered)
    }
}

#[test]
fn an_unacknowledged_message_comes_again_after_its_deadline() {
    let mut bench = Bench::new(settings(false));
    let stream = bench.stream(PLENTY);
    bench.publish("", &["a"]);
    assert_eq!(bench.texts(stream), ["a"]);
    bench.pass(Duration::from_millis(9_900));
    assert!(bench.take(stream).is_empty());
    bench.pass(Duration::from_millis(200));
    assert_eq!(bench.texts(stream), ["a"]);
}

#[test]
fn a_changed_deadline_counts_from_now() {
    let mut bench = Bench::new(settings(false));
    let stream = bench.stream(PLENTY);
    bench.publish("", &["long", "short"]);
    let received = bench.take(stream);
    bench.pass_seconds(5);
    bench.modify(&received[..1], 30);
    bench.modify(&received[1..], 1);
    bench.pass_seconds(2);
    assert_eq!(bench.texts(stream), ["short"]);
    bench.pass_seconds(27);
    bench.texts(stream);
    bench.pass_seconds(2);
    assert!(bench.texts(stream).contains(&"long".to_owned()));
}

#[test]
fn an_expired_id_still_settles_a_message_that_was_not_sent_again() {
    let mut bench = Bench::new(settings(false));
    bench.publish("", &["a"]);
    let received = bench.pull(1);
    bench.pass_seconds(11);
    bench.ack(&received);
    assert!(bench.pull(1).is_empty());
    assert_eq!(bench.view.payloads(), 0);
}

#[test]
fn a_message_is_not_sent_again_while_its_ack_is_on_its_way() {
    let mut bench = Bench::new(settings(false));
    let stream = bench.stream(PLENTY);
    bench.publish("", &["a"]);
    let received = bench.take(stream);
    bench.hold_log = true;
    bench.send_ack(&received);
    bench.pass_seconds(20);
    assert!(bench.take(stream).is_empty());
    bench.hold_log = false;
    bench.apply_log();
    bench.pass_seconds(20);
    assert!(bench.take(stream).is_empty());
}

#[test]
fn back_off_doubles_up_to_the_maximum() {
    let mut bench = Bench::new(with_retry(false));
    let stream = bench.stream(PLENTY);
    bench.publish("", &["a"]);
    for wait in [10, 20, 25, 25] {
        let received = bench.take(stream);
        assert_eq!(received.len(), 1);
        bench.nack(&received);
        bench.pass_seconds(wait - 1);
        assert!(bench.take(stream).is_empty());
        bench.pass_seconds(1);
    }
    assert_eq!(bench.take(stream).len(), 1);
}

#[test]
fn back_off_holds_the_whole_key_and_no_other() {
    let mut bench = Bench::new(with_retry(true));
    let stream = bench.stream(PLENTY);
    bench.publish("k", &["k1", "k2", "k3"]);
    let received = bench.take(stream);
    bench.ack(&received[..1]);
    bench.nack(&received[1..2]);
    bench.publish("k", &["k4"]);
    bench.publish("j", &["j1"]);
    assert_eq!(bench.texts(stream), ["j1"]);
    bench.pass(Duration::from_millis(9_900));
    assert!(!bench.texts(stream).iter().any(|text| text.starts_with('k')));
    bench.pass(Duration::from_millis(200));
    let texts = bench.texts(stream);
    let of_key: Vec<_> = texts.iter().filter(|text| text.starts_with('k')).collect();
    assert_eq!(of_key, ["k2", "k3", "k4"]);
}

#[test]
fn an_ack_ends_the_back_off_of_its_key() {
    let mut bench = Bench::new(with_retry(true));
    let stream = bench.stream(PLENTY);
    bench.publish("k", &["k1", "k2"]);
    let received = bench.take(stream);
    bench.nack(&received[..1]);
    bench.ack(&received[..1]);
    assert_eq!(bench.texts(stream), ["k2"]);
}

#[test]
fn only_what_a_client_never_confirmed_is_released_early() {
    let mut bench = Bench::new(settings(false));
    let old = bench.stream(PLENTY);
    bench.publish("", &["confirmed", "lost"]);
    let received = bench.take(old);
    bench.modify(&received[..1], 60);
    bench.close(old);
    let new = bench.stream(PLENTY);
    bench.pass(Duration::from_millis(4_900));
    assert!(bench.take(new).is_empty());
    bench.pass(Duration::from_millis(200));
    assert_eq!(bench.texts(new), ["lost"]);
    bench.pass_seconds(100);
    assert!(bench.texts(new).contains(&"confirmed".to_owned()));
}

#[test]
fn what_a_lost_stream_had_goes_to_another_in_order_as_soon_as_it_could_be_back() {
    let mut bench = Bench::new(settings(true));
    let lost = bench.stream(PLENTY);
    bench.publish("k", &["1", "2"]);
    let had = bench.take(lost);
    assert_eq!(had.len(), 2);
    bench.lose(lost);
    let other = bench.stream(PLENTY);
    bench.publish("k", &["3"]);
    bench.pass(BACK_WITHIN - Duration::from_millis(1));
    assert!(bench.take(other).is_empty(), "its client may be at work");
    bench.pass(Duration::from_millis(1));
    assert_eq!(bench.texts(other), ["1", "2", "3"]);
}

#[test]
fn a_stream_that_comes_back_in_time_keeps_what_it_has() {
    let mut bench = Bench::new(settings(true));
    let stream = bench.stream(PLENTY);
    bench.publish("k", &["1", "2"]);
    let had = bench.take(stream);
    bench.lose(stream);
    let other = bench.stream(PLENTY);
    bench.pass(BACK_WITHIN / 2);
    let stream = bench.come_back(stream);
    bench.pass_seconds(8);
    assert!(bench.take(other).is_empty(), "it has its whole deadline");
    assert!(bench.take(stream).is_empty(), "it has them");
    assert_eq!(bench.ack(&had), [AckReply::Acknowledged; 2]);
    bench.pass_seconds(10);
    assert!(bench.take(other).is_empty() && bench.take(stream).is_empty());
    bench.assert_all_credit_is_back(stream);
}

#[test]
fn a_confirmed_delivery_keeps_its_deadline_whether_its_stream_is_lost_or_back() {
    let mut bench = Bench::new(settings(false));
    let stream = bench.stream(PLENTY);
    bench.publish("", &["a"]);
    let had = bench.take(stream);
    bench.lose(stream);
    bench.modify(&had, 60);
    let other = bench.stream(PLENTY);
    bench.pass_seconds(5);
    bench.come_back(stream);
    bench.pass_seconds(54);
    assert!(bench.take(other).is_empty(), "its client has it");
}

#[test]
fn what_never_arrived_at_a_lost_stream_is_sent_to_it_at_once() {
    let mut bench = Bench::new(settings(true));
    let stream = bench.stream(PLENTY);
    bench.publish("k", &["1"]);
    let arrived = bench.take(stream);
    bench.publish("k", &["2", "3"]);
    bench.lose_behind(stream, &arrived);
    let stream = bench.come_back(stream);
    assert_eq!(bench.texts(stream), ["2", "3"], "1 is with the client");
    assert_eq!(bench.ack(&arrived), [AckReply::Acknowledged]);
    bench.pass_seconds(9);
    assert!(bench.take(stream).is_empty());
}

#[test]
fn what_a_pull_was_answered_with_keeps_its_whole_deadline() {
    let mut bench = Bench::new(settings(false));
    bench.publish("", &["a"]);
    assert_eq!(bench.pull(1).len(), 1);
    bench.pass_seconds(9);
    assert!(bench.pull(1).is_empty());
    bench.pass_seconds(1);
    assert_eq!(bench.pull(1).len(), 1);
}

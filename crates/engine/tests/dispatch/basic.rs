//! A subscription without order.

use engine::dispatch::{AckReply, Ended};
use model::Incarnation;

use crate::bench::{Bench, PLENTY, data, settings};

#[test]
fn a_message_reaches_an_open_stream_and_is_settled_by_its_ack() {
    let mut bench = Bench::new(settings(false));
    let stream = bench.stream(PLENTY);
    bench.publish("", &["a", "b"]);
    let received = bench.take(stream);
    let texts: Vec<_> = received
        .iter()
        .map(|delivery| data(&delivery.message))
        .collect();
    assert_eq!(texts, ["a", "b"]);
    assert_eq!(bench.ack(&received), [AckReply::Acknowledged; 2]);
    assert_eq!(bench.credit(stream), PLENTY);
    bench.pass_seconds(100);
    assert!(bench.take(stream).is_empty());
    assert_eq!(bench.view.payloads(), 0);
}

#[test]
fn a_backlog_is_delivered_to_a_later_pull() {
    let mut bench = Bench::new(settings(false));
    for text in ["a", "b", "c"] {
        bench.publish("", &[text]);
    }
    assert_eq!(bench.pull(2).len(), 2);
    assert_eq!(bench.pull(2).len(), 1);
    assert!(bench.pull(2).is_empty());
}

#[test]
fn messages_from_before_the_subscription_are_not_for_it() {
    let mut bench = Bench::new(settings(false));
    bench.publish("", &["a"]);
    let later = Incarnation(11);
    bench.attach(later, 1, settings(false));
    bench.publish("", &["b"]);
    let received = bench.pull(10);
    assert_eq!(received.len(), 2);
    bench.ack(&received);
    assert_eq!(bench.view.payloads(), 1, "b waits for the other one");
}

#[test]
fn acking_twice_is_fine() {
    let mut bench = Bench::new(settings(false));
    bench.publish("", &["a"]);
    let received = bench.pull(1);
    assert_eq!(bench.ack(&received), [AckReply::Acknowledged]);
    assert_eq!(bench.ack(&received), [AckReply::Acknowledged]);
}

#[test]
fn a_subscription_that_is_not_attached_ends_its_sessions() {
    let mut bench = Bench::new(settings(false));
    let stream = bench.stream(PLENTY);
    bench.detach(crate::bench::SUB);
    assert_eq!(bench.ended(stream), Some(Ended::NotAttached));
    let late = bench.stream(PLENTY);
    assert_eq!(bench.ended(late), Some(Ended::NotAttached));
}

#[test]
fn a_client_that_polls_does_not_make_the_leader_read_from_the_start() {
    let mut bench = Bench::new(settings(false));
    bench.attach(Incarnation(11), 1, settings(false));
    for _ in 0..20 {
        bench.publish("", &["a"]);
        let received = bench.pull(1);
        assert_eq!(received.len(), 1);
        bench.ack(&received);
    }
    bench.pass_seconds(61);
    assert!(bench.pull(1).is_empty());
    bench.publish("", &["b"]);
    assert_eq!(bench.pull(1).len(), 1);
}

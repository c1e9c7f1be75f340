//! Filters: what is not wanted is settled, and blocks nothing.

use bytes::Bytes;
use engine::subscription::SubscriptionSettings;

use crate::bench::{Bench, PLENTY, message, settings};

fn filtered(ordered: bool) -> SubscriptionSettings {
    SubscriptionSettings {
        filter: "attributes:wanted".into(),
        ..settings(ordered)
    }
}

fn wanted(text: &str) -> Bytes {
    let mut out = message(text).to_vec();
    out.extend_from_slice(b"\x12\x0b\x0a\x06wanted\x12\x011");
    out.into()
}

/// C10 for one filter; the filters themselves have their own tests.
#[test]
fn only_matching_messages_arrive_in_order_and_nothing_is_left() {
    for ordered in [false, true] {
        let mut bench = Bench::new(filtered(ordered));
        let stream = bench.stream(PLENTY);
        let messages = [
            wanted("0"),
            message("1"),
            wanted("2"),
            message("3"),
            message("4"),
        ];
        bench.publish_encoded("k", &messages);
        bench.publish_encoded("k", &[message("5")]);
        bench.publish_encoded("k", &[wanted("6")]);
        let received = bench.take(stream);
        assert_eq!(received.len(), 3);
        bench.ack(&received);
        assert_eq!(bench.view.payloads(), 0);
        assert_eq!(bench.credit(stream), PLENTY);
    }
}

#[test]
fn unwanted_messages_in_front_block_no_exactly_once_ack() {
    let mut bench = Bench::new(SubscriptionSettings {
        exactly_once: true,
        ..filtered(true)
    });
    let stream = bench.stream(PLENTY);
    bench.publish_encoded("k", &[message("0"), wanted("1"), message("2"), wanted("3")]);
    let received = bench.take(stream);
    assert_eq!(received.len(), 2);
    use engine::dispatch::AckReply::{Acknowledged, Unordered};
    assert_eq!(bench.ack(&received[1..]), [Unordered]);
    assert_eq!(bench.ack(&received[..1]), [Acknowledged]);
    assert_eq!(bench.ack(&received[1..]), [Acknowledged]);
    assert_eq!(bench.view.payloads(), 0);
}

#[test]
fn a_redelivery_passes_what_is_not_wanted_again() {
    let mut bench = Bench::new(filtered(true));
    let stream = bench.stream(PLENTY);
    bench.publish_encoded("k", &[wanted("0"), message("1"), wanted("2")]);
    let received = bench.take(stream);
    bench.nack(&received[..1]);
    let again = bench.take(stream);
    assert_eq!(again.len(), 2);
    bench.ack(&again);
    assert_eq!(bench.view.payloads(), 0);
}

#[test]
fn a_backlog_of_unwanted_messages_is_settled_without_a_delivery() {
    let mut bench = Bench::new(filtered(true));
    for number in 0..3_000 {
        bench.publish_encoded(&format!("k{}", number % 7), &[message("x")]);
    }
    bench.publish_encoded("k0", &[wanted("a")]);
    assert_eq!(bench.pull(10).len(), 1);
    assert_eq!(bench.view.payloads(), 1);
}

//! Settings that change under way.

use std::time::Duration;

use engine::dispatch::AckReply;
use engine::subscription::{RetryPolicy, SubscriptionSettings};

use crate::bench::{Bench, PLENTY, SUB, settings};

fn exactly_once(on: bool) -> SubscriptionSettings {
    SubscriptionSettings {
        exactly_once: on,
        ..settings(true)
    }
}

#[test]
fn sessions_hear_of_the_properties_first_and_of_every_change() {
    let mut bench = Bench::new(exactly_once(false));
    let stream = bench.stream(PLENTY);
    assert_eq!(bench.properties(stream), [(false, true)]);
    bench.attach(SUB, 2, exactly_once(true));
    assert_eq!(bench.properties(stream), [(false, true), (true, true)]);
    bench.attach(SUB, 1, exactly_once(false));
    assert_eq!(
        bench.properties(stream).len(),
        2,
        "an older version changes nothing"
    );
}

#[test]
fn what_was_delivered_before_exactly_once_can_still_be_acknowledged() {
    let mut bench = Bench::new(exactly_once(false));
    let stream = bench.stream(PLENTY);
    bench.publish("k", &["1", "2"]);
    let before = bench.take(stream);
    bench.attach(SUB, 2, exactly_once(true));
    bench.publish("k", &["3"]);
    let after = bench.take(stream);
    assert_eq!(bench.ack(&before), [AckReply::Acknowledged; 2]);
    assert_eq!(bench.ack(&after), [AckReply::Acknowledged]);
    bench.pass_seconds(30);
    assert!(bench.take(stream).is_empty());
}

#[test]
fn what_was_delivered_exactly_once_keeps_its_lease() {
    let mut bench = Bench::new(exactly_once(true));
    let stream = bench.stream(PLENTY);
    bench.publish("k", &["1"]);
    let before = bench.take(stream);
    bench.attach(SUB, 2, exactly_once(false));
    bench.change_leader();
    let stream = bench.come_back(stream);
    bench.pass_seconds(9);
    assert!(bench.take(stream).is_empty());
    assert_eq!(bench.ack(&before), [AckReply::Acknowledged]);
    bench.pass_seconds(30);
    assert!(bench.take(stream).is_empty());
}

#[test]
fn what_a_retry_policy_holds_back_comes_at_once_without_it() {
    let patient = SubscriptionSettings {
        retry: Some(RetryPolicy {
            minimum: Duration::from_secs(30),
            maximum: Duration::from_secs(600),
        }),
        ..settings(true)
    };
    let mut bench = Bench::new(patient);
    let stream = bench.stream(PLENTY);
    bench.publish("k", &["1", "2"]);
    bench.publish("", &["free"]);
    let received = bench.take(stream);
    bench.nack(&received);
    bench.pass_seconds(1);
    assert!(bench.take(stream).is_empty());
    bench.attach(SUB, 2, settings(true));
    let mut again = bench.texts(stream);
    again.sort();
    assert_eq!(again, ["1", "2", "free"]);
}

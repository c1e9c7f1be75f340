//! Cleaning up behind subscriptions, strands and acks.

use std::time::Duration;

use engine::subscription::SubscriptionSettings;
use engine::table::detached::Detached;
use engine::table::run::Run;
use engine::table::settled::Settled;
use engine::table::strand::Strand;
use model::limits::{SETTLED_KEPT, STRAND_IDLE};

use crate::bench::{Bench, PLENTY, SUB, settings};

#[test]
fn a_detached_subscription_leaves_nothing_however_large_its_backlog() {
    let mut bench = Bench::new(settings(true));
    for number in 0..2_500 {
        bench.publish(&format!("k{number}"), &["a"]);
    }
    let stream = bench.stream(PLENTY);
    assert_eq!(bench.take(stream).len(), 1_000);
    bench.detach(SUB);
    assert_eq!(bench.view.rows_of::<Run>(), 0);
    assert_eq!(bench.view.rows_of::<Detached>(), 0);
    assert_eq!(bench.view.payloads(), 0);
}

#[test]
fn a_new_leader_goes_on_with_an_unfinished_clean_up() {
    let mut bench = Bench::new(settings(false));
    for _ in 0..2_500 {
        bench.publish("", &["a"]);
    }
    bench.hold_log = true;
    bench.detach(SUB);
    bench.apply_entry();
    bench.hold_log = false;
    bench.change_leader();
    assert_eq!(bench.view.rows_of::<Run>(), 0);
    assert_eq!(bench.view.rows_of::<Detached>(), 0);
}

#[test]
fn drained_strands_and_old_ack_records_go_after_a_while() {
    let mut bench = Bench::new(SubscriptionSettings {
        exactly_once: true,
        ..settings(true)
    });
    let stream = bench.stream(PLENTY);
    for number in 0..10 {
        bench.publish(&format!("k{number}"), &["a"]);
    }
    let received = bench.take(stream);
    bench.ack(&received);
    let kept = (
        bench.view.rows_of::<Strand>(),
        bench.view.rows_of::<Settled>(),
    );
    assert_eq!(kept, (10, 10));
    bench.pass(STRAND_IDLE.max(SETTLED_KEPT) + Duration::from_secs(60));
    let kept = (
        bench.view.rows_of::<Strand>(),
        bench.view.rows_of::<Settled>(),
    );
    assert_eq!(kept, (0, 0));
}

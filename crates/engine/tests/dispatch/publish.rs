//! Publishes: gathered into entries, and refused in time.

use engine::dispatch::{PublishReply, Refused};
use engine::shard::{CloseTopic, Command};
use model::Timestamp;

use crate::bench::{Bench, TOPIC, message, settings};

#[test]
fn ids_of_a_request_count_up_and_requests_keep_their_order() {
    let mut bench = Bench::new(settings(false));
    let first = bench.publish("k", &["0", "1"]);
    let second = bench.publish("k", &["2"]);
    assert!(first[0] < first[1] && first[1] < second[0]);
}

#[test]
fn a_publish_whose_deadline_has_passed_is_never_stored() {
    let mut bench = Bench::new(settings(false));
    let late = Timestamp(bench.now.0 - 1);
    let request = bench.send_publish("k", &[message("a")], Some(late));
    let refused = PublishReply::Refused(Refused::DeadlinePassed);
    assert_eq!(bench.publish_reply(request), Some(refused));
    assert_eq!(bench.view.payloads(), 0);
}

#[test]
fn a_deadline_that_passes_while_the_publish_waits_counts_too() {
    let mut bench = Bench::new(settings(false));
    bench.hold_log = true;
    let deadline = bench.now.plus(std::time::Duration::from_secs(1));
    let mut last = None;
    // The first few are proposed at once; the rest waits for them.
    for _ in 0..10 {
        last = Some(bench.send_publish("k", &[message("a")], Some(deadline)));
    }
    bench.pass_seconds(2);
    bench.hold_log = false;
    bench.apply_log();
    let refused = PublishReply::Refused(Refused::DeadlinePassed);
    assert_eq!(bench.publish_reply(last.unwrap()), Some(refused));
}

#[test]
fn requests_that_wait_share_an_entry() {
    let mut bench = Bench::new(settings(false));
    bench.hold_log = true;
    for _ in 0..1_000 {
        bench.send_publish("k", &[message("a")], None);
    }
    let entries = std::iter::from_fn(|| {
        let applied = bench.apply_entry();
        bench.tell_outcomes();
        applied.then_some(())
    });
    assert!(entries.count() <= 6);
    assert_eq!(bench.view.payloads(), 1_000);
}

#[test]
fn too_much_at_once_is_refused_and_acknowledged_space_helps() {
    let mut bench = Bench::new(settings(false));
    bench.hold_log = true;
    let large = bytes::Bytes::from(vec![0; 8 * 1024 * 1024]);
    let requests: Vec<_> = (0..64)
        .map(|_| bench.send_publish("", std::slice::from_ref(&large), None))
        .collect();
    let refused = PublishReply::Refused(Refused::Overloaded);
    let refusals = requests
        .iter()
        .filter(|request| bench.publish_reply(**request) == Some(refused));
    assert!(refusals.count() > 0);
    assert_eq!(bench.publish_reply(requests[0]), None, "it waits");
    bench.hold_log = false;
    bench.apply_log();
    assert!(matches!(
        bench.publish_reply(requests[0]),
        Some(PublishReply::Stored { .. })
    ));
}

#[test]
fn a_closed_topic_takes_nothing() {
    let mut bench = Bench::new(settings(false));
    bench.catalogue(Command::CloseTopic(CloseTopic { topic: TOPIC }));
    let request = bench.send_publish("k", &[message("a")], None);
    let refused = PublishReply::Refused(Refused::TopicClosed);
    assert_eq!(bench.publish_reply(request), Some(refused));
}

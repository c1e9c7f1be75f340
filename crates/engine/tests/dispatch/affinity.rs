//! Which stream has which key.

use std::collections::BTreeMap;

use engine::dispatch::Ended;
use model::KeyHash;

use crate::bench::{Bench, Credit, PLENTY, data, settings};

/// C11: consumer A holds many and stops; B joins with little credit; A goes on.
#[test]
fn a_consumer_that_stops_slows_only_the_keys_that_it_holds() {
    let mut bench = Bench::new(settings(true));
    let slow = bench.stream(Credit {
        messages: 500,
        ..PLENTY
    });
    let keys: Vec<String> = (0..10).map(|key| format!("k{key}")).collect();
    for number in 0..50 {
        for key in &keys {
            bench.publish(key, &[&format!("{number}")]);
        }
    }
    let held = bench.take(slow);
    assert_eq!(held.len(), 500);
    let quick = bench.stream(Credit {
        messages: 1,
        ..PLENTY
    });
    for number in 50..100 {
        for key in &keys {
            bench.publish(key, &[&format!("{number}")]);
        }
    }
    bench.publish("fresh", &["0"]);
    bench.pass_seconds(1);
    let received = bench.take(quick);
    assert_eq!(received.len(), 1, "a key that nobody holds goes on at once");
    bench.ack(&received);

    let mut seen: BTreeMap<KeyHash, Vec<usize>> = BTreeMap::new();
    let mut pending = held;
    for _ in 0..2_000 {
        for delivery in &pending {
            let number = data(&delivery.message).parse().unwrap();
            seen.entry(delivery.ack.key).or_default().push(number);
        }
        bench.ack(&pending);
        bench.pass(std::time::Duration::from_millis(10));
        pending = bench.take(slow);
        pending.extend(bench.take(quick));
        if pending.is_empty() {
            break;
        }
    }
    assert_eq!(seen.len(), 10);
    for numbers in seen.values() {
        assert_eq!(
            *numbers,
            (0..100).collect::<Vec<_>>(),
            "in order, without a gap"
        );
    }
}

#[test]
fn a_stream_with_the_same_client_id_takes_over_its_predecessors_keys() {
    let mut bench = Bench::new(settings(true));
    let old = bench.stream_of("client", PLENTY);
    bench.publish("k", &["1"]);
    let received = bench.take(old);
    let others: Vec<_> = (0..5).map(|_| bench.stream(PLENTY)).collect();
    let new = bench.stream_of("client", PLENTY);
    assert_eq!(bench.ended(old), Some(Ended::TakenOver));
    bench.publish("k", &["2"]);
    bench.pass_seconds(1);
    let got: Vec<_> = others
        .iter()
        .flat_map(|other| bench.texts(*other))
        .collect();
    assert!(got.is_empty());
    // Whether 2 follows at once or waits for 1, it is the same client's.
    bench.ack(&received);
    bench.pass_seconds(1);
    let mut all = bench.texts(new);
    for other in others {
        all.extend(bench.texts(other));
    }
    assert_eq!(all, ["2"]);
}

#[test]
fn keys_are_spread_over_streams() {
    let mut bench = Bench::new(settings(true));
    let streams = [bench.stream(PLENTY), bench.stream(PLENTY)];
    for key in 0..100 {
        bench.publish(&format!("k{key}"), &["a"]);
    }
    for stream in streams {
        let received = bench.take(stream).len();
        assert!((25..=75).contains(&received), "{received}");
    }
}

#[test]
fn a_new_stream_gets_its_share_of_busy_keys_once_they_are_settled() {
    let mut bench = Bench::new(settings(true));
    let first = bench.stream(PLENTY);
    for key in 0..40 {
        bench.publish(&format!("k{key}"), &["0"]);
    }
    let received = bench.take(first);
    let second = bench.stream(PLENTY);
    for key in 0..40 {
        bench.publish(&format!("k{key}"), &["1"]);
    }
    let at_once = bench.take(first);
    assert!(
        bench.take(second).is_empty(),
        "nothing moves while it is outstanding"
    );
    bench.ack(&received);
    let moved = bench.take(second).len();
    assert!((8..=32).contains(&moved), "{moved}");
    assert_eq!(at_once.len() + bench.take(first).len() + moved, 40);
}

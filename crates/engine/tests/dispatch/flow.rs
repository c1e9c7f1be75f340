//! Credit: never more outstanding than granted, and all of it back, however a lease ends.

use std::time::Duration;

use crate::bench::{Bench, Credit, PLENTY, message, settings};

fn messages(messages: u32) -> Credit {
    Credit { messages, ..PLENTY }
}

#[test]
fn a_stream_gets_as_many_messages_as_it_may_have_outstanding() {
    let mut bench = Bench::new(settings(false));
    let stream = bench.stream(messages(5));
    for _ in 0..20 {
        bench.publish("", &["a"]);
    }
    let received = bench.take(stream);
    assert_eq!(received.len(), 5);
    bench.ack(&received[..2]);
    assert_eq!(bench.take(stream).len(), 2);
}

#[test]
fn the_message_that_crosses_the_limit_of_bytes_is_the_last() {
    let mut bench = Bench::new(settings(false));
    let size = message(&"x".repeat(98)).len() as u64;
    let stream = bench.stream(Credit {
        messages: 100,
        bytes: 2 * size + 1,
    });
    for _ in 0..5 {
        bench.publish("", &[&"x".repeat(98)]);
    }
    assert_eq!(bench.take(stream).len(), 3);
}

#[test]
fn credit_comes_back_however_a_lease_ends() {
    let mut bench = Bench::new(settings(true));
    let stream = bench.stream(messages(3));
    bench.publish("k", &["1", "2", "3"]);
    let received = bench.take(stream);
    assert_eq!(bench.credit(stream).messages, 0);
    // Frees all three, since the later ones end with the first; and all three come again.
    bench.nack(&received[..1]);
    let again = bench.take(stream);
    assert_eq!(again.len(), 3);
    bench.pass_seconds(10);
    let again = bench.take(stream);
    assert_eq!(again.len(), 3);
    bench.ack(&again);
    assert_eq!(bench.credit(stream), messages(3));
}

#[test]
fn one_message_is_not_offered_to_everybody() {
    let mut bench = Bench::new(settings(false));
    bench.hold_offers = true;
    let streams: Vec<_> = (0..10).map(|_| bench.stream(PLENTY)).collect();
    bench.publish("", &["a"]);
    let offers = |bench: &Bench| {
        let offered = streams.iter().filter(|stream| bench.has_offer(**stream));
        offered.count()
    };
    assert_eq!(offers(&bench), 1);
    bench.pass(Duration::from_millis(900));
    assert!(offers(&bench) > 1, "the first one seems to have no credit");
}

/// C13: a message reaches one of many waiting Pulls at once, also if the first has gone.
#[test]
fn a_message_that_was_offered_to_a_pull_that_gave_up_goes_to_the_next() {
    let mut bench = Bench::new(settings(true));
    bench.hold_offers = true;
    let first = bench.waiting_pull(1);
    bench.publish("k", &["a"]);
    assert!(bench.has_offer(first));
    let second = bench.waiting_pull(1);
    bench.close(first);
    bench.hold_offers = false;
    bench.pass(Duration::from_millis(1));
    assert_eq!(bench.texts(second), ["a"]);
}

#[test]
fn a_message_of_the_largest_size_travels() {
    let mut bench = Bench::new(settings(false));
    let stream = bench.stream(Credit {
        messages: 10,
        bytes: 1_000,
    });
    let huge = bytes::Bytes::from(vec![0; 9_900_000]);
    bench.publish_encoded("", &[huge]);
    assert_eq!(bench.take(stream).len(), 1);
}

#[test]
fn streams_take_turns() {
    let mut bench = Bench::new(settings(false));
    let streams = [bench.stream(PLENTY), bench.stream(PLENTY)];
    for _ in 0..10 {
        bench.publish("", &["a"]);
    }
    for stream in streams {
        assert_eq!(bench.take(stream).len(), 5);
    }
}

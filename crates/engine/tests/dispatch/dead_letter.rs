//! Dead letters: after the last attempt a message leaves, and its key goes on.

use engine::dispatch::Forwarded;
use engine::message_wire::attribute;
use engine::subscription::{DeadLetterPolicy, RetryPolicy, SubscriptionSettings};
use model::{SubscriptionName, TopicName};
use std::time::Duration;

use crate::bench::{Bench, PLENTY, SUB, settings};

fn with_dead_letters(ordered: bool) -> SubscriptionSettings {
    SubscriptionSettings {
        dead_letter: Some(DeadLetterPolicy {
            topic: TopicName::parse("projects/p/topics/dead").unwrap(),
            source: SubscriptionName::parse("projects/p/subscriptions/source").unwrap(),
            attempts_max: 5,
        }),
        ..settings(ordered)
    }
}

/// Nacks what the subscription delivers, until the message is on its way to the dead letters.
fn nack_to_death(bench: &mut Bench) {
    for attempt in 1..=5 {
        let received = bench.pull(1);
        assert_eq!(received[0].delivery_attempt, attempt);
        assert!(bench.forwards.is_empty());
        bench.nack(&received);
    }
    assert_eq!(bench.forwards.len(), 1);
}

#[test]
fn the_fifth_nack_sends_a_message_to_the_dead_letters() {
    let mut bench = Bench::new(with_dead_letters(false));
    bench.publish("k", &["a"]);
    nack_to_death(&mut bench);
    let (forward, letter, _) = bench.forwards.remove(0);
    let count = attribute(&letter, "CloudPubSubDeadLetterSourceDeliveryCount");
    assert_eq!(count, Some("5"));
    let source = attribute(&letter, "CloudPubSubDeadLetterSourceSubscription");
    assert_eq!(source, Some("source"));
    assert!(bench.pull(1).is_empty());
    assert_eq!(
        bench.view.payloads(),
        1,
        "it is kept until it is stored there"
    );
    bench.forwarded(forward, Forwarded::Stored);
    assert_eq!(bench.view.payloads(), 0);
}

#[test]
fn an_expiry_is_an_attempt_and_a_returned_delivery_is_none() {
    let mut bench = Bench::new(with_dead_letters(false));
    bench.publish("", &["a"]);
    let pull = bench.waiting_pull(1);
    let received = bench.take(pull);
    bench.close_returning(pull, &received);
    assert_eq!(bench.pull(1)[0].delivery_attempt, 1);
    bench.pass_seconds(11);
    assert_eq!(bench.pull(1)[0].delivery_attempt, 2);
}

/// C2, for fifty keys, and with a change of the leader before the message is stored.
#[test]
fn a_dead_message_does_not_stop_its_key() {
    for leader_changes in [false, true] {
        let mut bench = Bench::new(with_dead_letters(true));
        for number in 0..50 {
            let key = format!("a{number}");
            bench.publish(&key, &["a1"]);
            nack_to_death(&mut bench);
            if leader_changes {
                bench.forwards.clear();
                bench.change_leader();
            }
            bench.publish(&key, &["a2"]);
            bench.publish("b", &["b1"]);
            let stream = bench.stream(PLENTY);
            let (forward, ..) = bench.forwards.remove(0);
            bench.forwarded(forward, Forwarded::Stored);
            bench.pass_seconds(1);
            let received = bench.take(stream);
            assert_eq!(received.len(), 2, "a2 and b1");
            bench.ack(&received);
            bench.close(stream);
        }
        assert_eq!(bench.view.payloads(), 0);
    }
}

#[test]
fn messages_behind_a_dead_one_keep_their_leases() {
    let mut bench = Bench::new(with_dead_letters(true));
    bench.publish("k", &["1", "2", "3"]);
    for _ in 1..5 {
        let received = bench.pull(1);
        bench.nack(&received);
    }
    let stream = bench.stream(PLENTY);
    let received = bench.take(stream);
    assert_eq!(received.len(), 3);
    bench.nack(&received[..1]);
    let (forward, _, key) = bench.forwards.remove(0);
    assert_eq!(key, "", "the bench's messages carry no key of their own");
    bench.forwarded(forward, Forwarded::Stored);
    assert!(bench.take(stream).is_empty(), "2 and 3 do not come again");
    bench.ack(&received[1..]);
    bench.publish("k", &["4"]);
    assert_eq!(bench.texts(stream), ["4"]);
}

#[test]
fn without_the_topic_a_message_is_delivered_on_and_never_lost() {
    let mut bench = Bench::new(with_dead_letters(true));
    bench.publish("k", &["a"]);
    nack_to_death(&mut bench);
    for attempt in 6..9 {
        let (forward, ..) = bench.forwards.remove(0);
        bench.forwarded(forward, Forwarded::NoTopic);
        let received = bench.pull(1);
        assert_eq!(received[0].delivery_attempt, attempt);
        bench.nack(&received);
    }
}

#[test]
fn a_letter_of_unknown_fate_is_sent_again() {
    let mut bench = Bench::new(with_dead_letters(false));
    bench.publish("", &["a"]);
    nack_to_death(&mut bench);
    let (forward, ..) = bench.forwards.remove(0);
    bench.forwarded(forward, Forwarded::Unknown);
    bench.pass_seconds(2);
    let (again, ..) = bench.forwards.remove(0);
    bench.forwarded(again, Forwarded::Stored);
    assert_eq!(bench.view.payloads(), 0);
}

#[test]
fn a_dead_letter_that_an_earlier_leader_delivered_does_not_come_again() {
    let mut bench = Bench::new(SubscriptionSettings {
        exactly_once: true,
        ..with_dead_letters(false)
    });
    bench.publish("", &["a", "b"]);
    for _ in 1..5 {
        let received = bench.pull(2);
        bench.nack(&received);
    }
    let received = bench.pull(2);
    bench.change_leader();
    // The new leader reads both ahead, and then learns that one is dead.
    bench.hold_offers = true;
    let stream = bench.stream(PLENTY);
    bench.nack(&received[..1]);
    let (forward, ..) = bench.forwards.remove(0);
    bench.forwarded(forward, Forwarded::Stored);
    // From now on no log refuses to lease what is settled.
    bench.attach(SUB, 2, with_dead_letters(false));
    bench.hold_offers = false;
    bench.answer_offers();
    bench.pass_seconds(1);
    assert_eq!(bench.texts(stream), [""; 0]);
}

#[test]
fn back_off_follows_the_attempts_that_the_log_counts() {
    let mut bench = Bench::new(SubscriptionSettings {
        retry: Some(RetryPolicy {
            minimum: Duration::from_secs(10),
            maximum: Duration::from_secs(600),
        }),
        ..with_dead_letters(true)
    });
    bench.publish("k", &["a"]);
    let received = bench.pull(1);
    bench.nack(&received);
    bench.change_leader();
    let received = bench.pull(1);
    assert_eq!(
        received[0].delivery_attempt, 2,
        "a new leader does not know of the wait"
    );
    bench.nack(&received);
    bench.pass_seconds(19);
    assert!(bench.pull(1).is_empty());
    bench.pass_seconds(1);
    assert_eq!(bench.pull(1)[0].delivery_attempt, 3);
}

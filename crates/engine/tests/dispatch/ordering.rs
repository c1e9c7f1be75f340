//! Messages of one key: in order, each after the one before, over all sessions and leaders.

use engine::dispatch::{AckReply, Delivered};

use crate::bench::{Bench, PLENTY, data, settings};

fn texts(deliveries: &[Delivered]) -> Vec<String> {
    deliveries
        .iter()
        .map(|delivery| data(&delivery.message))
        .collect()
}

fn published(key: &str) -> Bench {
    let mut bench = Bench::new(settings(true));
    bench.publish(key, &["0", "1", "2"]);
    bench.publish(key, &["3", "4"]);
    bench
}

#[test]
fn a_stream_gets_all_of_a_key_in_order_before_the_first_ack() {
    let mut bench = published("k");
    let stream = bench.stream(PLENTY);
    assert_eq!(bench.texts(stream), ["0", "1", "2", "3", "4"]);
}

#[test]
fn a_nacked_message_takes_the_later_ones_along() {
    let mut bench = published("k");
    let stream = bench.stream(PLENTY);
    let first = bench.take(stream);
    bench.ack(&first[2..4]);
    bench.nack(&first[..1]);
    let again = bench.take(stream);
    assert_eq!(texts(&again), ["0", "1", "2", "3", "4"]);
    assert_eq!(bench.ack(&again), [AckReply::Acknowledged; 5]);
    assert_eq!(bench.credit(stream), PLENTY);
    assert_eq!(bench.view.payloads(), 0);
}

/// C1: the consumer nacks the first receipt of 0.
#[test]
fn nothing_behind_a_nacked_message_comes_before_it() {
    for size in [1, 10] {
        let mut bench = published("k");
        let first = bench.pull(size);
        assert_eq!(data(&first[0].message), "0");
        bench.nack(&first[..1]);
        let mut received = Vec::new();
        while received.len() < 5 {
            let batch = bench.pull(size);
            assert!(!batch.is_empty());
            received.extend(texts(&batch));
            bench.ack(&batch);
        }
        assert_eq!(received, ["0", "1", "2", "3", "4"]);
    }
}

/// C7: a killed Pull, then Pull(1) and nack in a loop.
#[test]
fn a_nacked_head_comes_again_and_again() {
    let mut bench = published("k");
    let pull = bench.waiting_pull(5);
    let received = bench.take(pull);
    assert_eq!(received.len(), 5);
    bench.close_returning(pull, &received);
    for _ in 0..20 {
        let batch = bench.pull(1);
        assert_eq!(texts(&batch), ["0"]);
        bench.nack(&batch);
    }
    let head = bench.pull(1);
    bench.ack(&head);
    assert_eq!(texts(&bench.pull(1)), ["1"]);
}

#[test]
fn only_one_batch_of_a_key_is_with_pulls() {
    let mut bench = Bench::new(settings(true));
    bench.publish("k", &["k1", "k2", "k3"]);
    let batch = bench.pull(2);
    assert_eq!(texts(&batch), ["k1", "k2"]);
    bench.publish("l", &["l1"]);
    assert_eq!(texts(&bench.pull(10)), ["l1"]);
    bench.ack(&batch[..1]);
    assert!(bench.pull(10).is_empty());
    bench.ack(&batch[1..]);
    assert_eq!(texts(&bench.pull(10)), ["k3"]);
}

#[test]
fn a_key_is_with_one_stream_until_all_of_it_is_settled() {
    let mut bench = Bench::new(settings(true));
    let first = bench.stream(PLENTY);
    bench.publish("k", &["0", "1"]);
    let held = bench.take(first);
    assert_eq!(held.len(), 2);
    let streams: Vec<_> = (0..8).map(|_| bench.stream(PLENTY)).collect();
    bench.publish("k", &["2"]);
    for stream in &streams {
        assert!(bench.take(*stream).is_empty());
    }
    bench.ack(&held);
    bench.pass_seconds(1);
    let mut got = bench.texts(first);
    for stream in streams {
        got.extend(bench.texts(stream));
    }
    assert_eq!(got, ["2"]);
}

#[test]
fn an_expired_message_takes_the_later_ones_along_even_acknowledged_ones() {
    let mut bench = published("k");
    let stream = bench.stream(PLENTY);
    let first = bench.take(stream);
    bench.ack(&first[1..3]);
    bench.pass_seconds(10);
    let again = bench.take(stream);
    assert_eq!(texts(&again), ["0", "1", "2", "3", "4"]);
}

#[test]
fn a_late_ack_counts_while_the_message_was_not_sent_again() {
    let mut bench = published("k");
    let batch = bench.pull(5);
    bench.pass_seconds(11);
    assert_eq!(bench.ack(&batch[..3]), [AckReply::Acknowledged; 3]);
    assert_eq!(texts(&bench.pull(5)), ["3", "4"]);
}

#[test]
fn an_ack_that_crosses_a_redelivery_does_not_count() {
    let mut bench = published("k");
    let stream = bench.stream(PLENTY);
    let first = bench.take(stream);
    bench.hold_log = true;
    bench.nack(&first[..1]);
    // The rewind is on its way through the log when the ack comes.
    let late = bench.send_ack(&first[1..2]);
    bench.hold_log = false;
    bench.apply_log();
    bench.pass_seconds(0);
    assert_eq!(bench.ack_replies(late), Some(&vec![AckReply::Acknowledged]));
    let again = bench.take(stream);
    assert_eq!(texts(&again), ["0", "1", "2", "3", "4"]);
    bench.ack(&again[..1]);
    bench.pass_seconds(10);
    assert_eq!(texts(&bench.take(stream)), ["1", "2", "3", "4"]);
}

#[test]
fn a_new_leader_goes_on_at_the_first_message_that_is_not_acknowledged() {
    let mut bench = published("k");
    let stream = bench.stream(PLENTY);
    let first = bench.take(stream);
    bench.ack(&first[..2]);
    bench.ack(&first[3..4]);
    bench.change_leader();
    let stream = bench.stream(PLENTY);
    let again = bench.take(stream);
    assert_eq!(texts(&again), ["2", "3", "4"]);
    assert_eq!(
        bench.ack(&first[2..3]),
        [AckReply::Acknowledged],
        "superseded"
    );
    assert_eq!(bench.ack(&again[1..]), [AckReply::Acknowledged; 2]);
    bench.pass_seconds(10);
    assert_eq!(texts(&bench.take(stream)), ["2", "3", "4"]);
}

#[test]
fn ids_of_an_earlier_leader_count_until_it_is_sent_again() {
    let mut bench = published("k");
    let batch = bench.pull(5);
    bench.change_leader();
    assert_eq!(bench.ack(&batch[..2]), [AckReply::Acknowledged; 2]);
    assert_eq!(texts(&bench.pull(5)), ["2", "3", "4"]);
}

#[test]
fn messages_without_a_key_wait_for_nothing() {
    let mut bench = Bench::new(settings(true));
    bench.publish("", &["a", "b"]);
    let batch = bench.pull(1);
    assert_eq!(texts(&bench.pull(1)), ["b"]);
    bench.nack(&batch);
    assert_eq!(texts(&bench.pull(5)), ["a"]);
}

#[test]
fn without_ordering_a_nacked_message_blocks_none_of_its_key() {
    let mut bench = Bench::new(settings(false));
    bench.publish("k", &["0", "1", "2"]);
    let batch = bench.pull(1);
    bench.nack(&batch);
    let mut rest = texts(&bench.pull(3));
    rest.sort();
    assert_eq!(rest, ["0", "1", "2"]);
}

#[test]
fn a_stuck_key_slows_no_other() {
    let mut bench = Bench::new(settings(true));
    bench.publish("stuck", &["0"]);
    let stuck = bench.pull(1);
    for _ in 0..3_000 {
        bench.publish("stuck", &["x"]);
    }
    bench.publish("k", &["1"]);
    assert_eq!(texts(&bench.pull(1)), ["1"]);
    bench.ack(&stuck);
    assert_eq!(bench.pull(1_000).len(), 1_000);
}

#[test]
fn keys_are_spread_and_a_stream_without_credit_holds_up_only_its_own() {
    let mut bench = Bench::new(settings(true));
    let slow = bench.stream(crate::bench::Credit {
        messages: 1,
        bytes: 1_000_000,
    });
    let fast = bench.stream(PLENTY);
    for key in 0..20 {
        bench.publish(&format!("k{key}"), &["0", "1"]);
    }
    bench.pass_seconds(1);
    let held = bench.take(slow);
    assert_eq!(held.len(), 1);
    assert_eq!(
        bench.take(fast).len(),
        38,
        "all keys but the one that the slow stream holds"
    );
}

#[test]
fn an_ack_that_a_rewind_on_its_way_will_erase_is_not_answered_with_ok() {
    let mut bench = published("k");
    let stream = bench.stream(PLENTY);
    let received = bench.take(stream);
    bench.hold_log = true;
    bench.hold_offers = true;
    bench.nack(&received[2..3]);
    let erased = bench.send_ack(&received[2..3]);
    bench.hold_offers = false;
    bench.pass_seconds(0);
    // The rewind to 2 follows the ack through the log; meanwhile the lane goes back further.
    bench.nack(&received[..1]);
    let counted = bench.send_ack(&received[..2]);
    bench.hold_log = false;
    bench.apply_log();
    bench.pass_seconds(0);
    assert_eq!(
        bench.ack_replies(counted),
        Some(&vec![AckReply::Acknowledged; 2])
    );
    assert_eq!(texts(&bench.take(stream)), ["2", "3", "4"]);
    assert_eq!(bench.ack_replies(erased), Some(&vec![AckReply::Superseded]));
}

#[test]
fn old_ids_that_do_not_count_wait_for_no_credit() {
    let mut bench = published("k");
    let stream = bench.stream(PLENTY);
    let first = bench.take(stream);
    bench.change_leader();
    let stream = bench.stream(PLENTY);
    assert_eq!(texts(&bench.take(stream)), ["0", "1", "2", "3", "4"]);
    // Nobody has room for a message at a third leader, since no session has come yet.
    bench.change_leader();
    let mut expected = vec![AckReply::Acknowledged; 5];
    expected[0] = AckReply::Void;
    // The others follow 0, acknowledged or not. But 0 may never have been sent again.
    assert_eq!(bench.ack(&first), expected);
    let stream = bench.stream(PLENTY);
    let again = bench.take(stream);
    assert_eq!(texts(&again), ["0", "1", "2", "3", "4"]);
    assert_eq!(bench.ack(&first), [AckReply::Acknowledged; 5]);
    bench.ack(&again[..1]);
    bench.pass_seconds(10);
    assert_eq!(texts(&bench.take(stream)), ["1", "2", "3", "4"]);
}

//! Claims: the first publish of a key waits until its registry group says who owns the key.

use std::time::Duration;

use engine::dispatch::{PublishReply, Refused, RequestId};
use engine::registry::{Claim, Command};
use engine::table::strand::StrandKey;
use model::limits::{KEY_HELD_REQUESTS_MAX, REGISTRY_KEYS_MAX};
use model::{Epoch, MessageId, ShardNumber};

use crate::bench::{Bench, PLENTY, TOPIC, key, message, settings};

const ELSEWHERE: ShardNumber = ShardNumber(7);

/// A bench whose registry group is slow.
fn slow() -> Bench {
    let mut bench = Bench::new(settings(true));
    bench.hold_registry = true;
    bench
}

fn send(bench: &mut Bench, key: &str) -> RequestId {
    bench.send_publish(key, &[message("a")], None)
}

fn stored(bench: &Bench, request: RequestId) -> MessageId {
    match bench.publish_reply(request) {
        Some(PublishReply::Stored { first }) => first,
        other => panic!("{other:?}"),
    }
}

fn claim(bench: &mut Bench, shard: ShardNumber, name: &str) {
    let strand = key(name);
    let strands = vec![StrandKey {
        topic: TOPIC,
        strand,
    }];
    bench.registry(&Command::Claim(Claim { shard, strands }));
}

#[test]
fn publishes_of_an_unclaimed_key_wait_in_order_and_hold_up_no_other() {
    let mut bench = slow();
    let first = send(&mut bench, "k");
    let second = send(&mut bench, "k");
    let unkeyed = send(&mut bench, "");
    stored(&bench, unkeyed);
    assert_eq!(bench.publish_reply(first), None);
    assert_eq!(bench.questions.len(), 1, "a key is asked for once");
    assert!(bench.answer_question());
    assert!(stored(&bench, first) < stored(&bench, second));
    let third = send(&mut bench, "k");
    stored(&bench, third);
    assert!(bench.questions.is_empty(), "the strand is open");
}

#[test]
fn keys_that_come_meanwhile_share_a_question() {
    let mut bench = slow();
    let requests: Vec<_> = (0..2 * REGISTRY_KEYS_MAX)
        .map(|number| send(&mut bench, &format!("k{number}")))
        .collect();
    let mut questions = 0;
    while bench.answer_question() {
        questions += 1;
    }
    assert!(questions <= 4, "{questions} questions");
    for request in requests {
        stored(&bench, request);
    }
}

#[test]
fn a_key_that_is_pinned_elsewhere_is_answered_with_its_owner() {
    let mut bench = slow();
    claim(&mut bench, ELSEWHERE, "k");
    let requests = [send(&mut bench, "k"), send(&mut bench, "k")];
    bench.answer_question();
    let moved = PublishReply::Moved {
        shard: ELSEWHERE,
        epoch: Epoch(1),
    };
    assert_eq!(
        requests.map(|request| bench.publish_reply(request)),
        [Some(moved); 2]
    );
    assert_eq!(bench.view.payloads(), 0);
}

#[test]
fn a_lost_question_is_asked_again() {
    let mut bench = slow();
    let request = send(&mut bench, "k");
    bench.lose_question();
    assert!(bench.questions.is_empty(), "not at once");
    bench.pass(Duration::from_secs(1));
    bench.answer_question();
    stored(&bench, request);
}

#[test]
fn a_publish_is_refused_whose_deadline_passes_while_no_group_answers() {
    let mut bench = slow();
    let deadline = bench.now.plus(Duration::from_millis(100));
    let late = bench.send_publish("k", &[message("a")], Some(deadline));
    bench.lose_question();
    bench.pass_seconds(1);
    let refused = PublishReply::Refused(Refused::DeadlinePassed);
    assert_eq!(bench.publish_reply(late), Some(refused));
    assert!(bench.questions.is_empty(), "nobody waits for the key");
    let next = send(&mut bench, "k");
    bench.answer_question();
    stored(&bench, next);
}

#[test]
fn only_so_many_publishes_of_a_key_wait() {
    let mut bench = slow();
    let requests: Vec<_> = (0..=KEY_HELD_REQUESTS_MAX)
        .map(|_| send(&mut bench, "hot"))
        .collect();
    let refused = PublishReply::Refused(Refused::Overloaded);
    let refusals = requests
        .iter()
        .filter(|request| bench.publish_reply(**request) == Some(refused));
    assert_eq!(refusals.count(), 1);
    let other = send(&mut bench, "cold");
    while bench.answer_question() {}
    stored(&bench, other);
    stored(&bench, requests[0]);
}

#[test]
fn deliveries_carry_the_epoch_of_the_pin() {
    let mut bench = Bench::new(settings(true));
    for name in ["a", "b", "c"] {
        claim(&mut bench, ELSEWHERE, name);
    }
    bench.publish("k", &["0"]);
    bench.publish("", &["1"]);
    let session = bench.stream(PLENTY);
    let epochs: Vec<_> = bench
        .take(session)
        .iter()
        .map(|delivery| delivery.ack.generation.epoch)
        .collect();
    assert_eq!(epochs, [Epoch(4), Epoch(0)]);
}

#[test]
fn a_new_leader_goes_on_without_a_claim() {
    let mut bench = slow();
    send(&mut bench, "k");
    bench.answer_question();
    bench.change_leader();
    let request = send(&mut bench, "k");
    stored(&bench, request);
    assert!(bench.questions.is_empty());
}

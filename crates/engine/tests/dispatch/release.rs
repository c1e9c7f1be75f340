//! Keys that nobody uses go: first their pins, then their strands.

use std::time::Duration;

use engine::dispatch::PublishReply;
use engine::registry::{Claim, Command};
use engine::table::epoch_floor::EpochFloor;
use engine::table::lane::Lane;
use engine::table::sealed::Sealed;
use engine::table::strand::{Strand, StrandKey};
use model::limits::STRAND_IDLE;
use model::{Epoch, ShardNumber};

use crate::bench::{Bench, PLENTY, SHARD, TOPIC, key, message, settings};

const IDLE: Duration = Duration::from_secs(660);
const ELSEWHERE: ShardNumber = ShardNumber(7);

fn claim(bench: &mut Bench, shard: ShardNumber, name: &str) {
    let strand = key(name);
    let strands = vec![StrandKey {
        topic: TOPIC,
        strand,
    }];
    bench.registry(&Command::Claim(Claim { shard, strands }));
}

/// A key of which everything is acknowledged, and a registry group that does not answer any more.
fn drained() -> Bench {
    let mut bench = Bench::new(settings(true));
    let stream = bench.stream(PLENTY);
    bench.publish("k", &["a"]);
    let received = bench.take(stream);
    bench.ack(&received);
    bench.close(stream);
    bench.hold_registry = true;
    bench
}

/// The same, when it has been idle for so long that it is sealed.
fn sealed() -> Bench {
    let mut bench = drained();
    bench.pass(IDLE);
    assert_eq!(bench.view.rows_of::<Sealed>(), 1);
    bench
}

fn open_at(bench: &Bench) -> Option<Epoch> {
    let strand = engine::shard::read::strand(&bench.view, TOPIC, key("k")).unwrap();
    strand
        .filter(|strand| !strand.sealed)
        .map(|strand| strand.epoch)
}

#[test]
fn state_grows_with_the_keys_in_use_not_with_all_that_ever_were() {
    let mut bench = Bench::new(settings(true));
    let stream = bench.stream(PLENTY);
    for number in 0..5_000 {
        bench.publish(&format!("k{number}"), &["a"]);
        let received = bench.take(stream);
        bench.ack(&received);
    }
    bench.close(stream);
    bench.publish("wanted", &["a"]);
    assert_eq!(bench.pins().len(), 5_001);
    bench.pass(IDLE + Duration::from_secs(60));
    let rows = (
        bench.view.rows_of::<Strand>(),
        bench.view.rows_of::<Lane>(),
        bench.view.rows_of::<Sealed>(),
        bench.view.rows_of::<EpochFloor>(),
    );
    assert_eq!(rows, (1, 0, 0, 1), "one key has a message");
    assert_eq!(bench.pins().len(), 1);
}

#[test]
fn a_key_that_comes_again_goes_on_with_growing_ids() {
    let mut bench = drained();
    bench.hold_registry = false;
    bench.pass(IDLE);
    assert_eq!(bench.pins().len(), 0);
    let ids = bench.publish("k", &["b"]);
    assert!(ids[0].counter() > 1, "P8: ids grow also over a release");
    let received = bench.pull(1);
    assert_eq!(received[0].ack.message, ids[0]);
    assert_eq!(received[0].ack.generation.epoch, Epoch(2));
}

#[test]
fn a_publish_that_comes_while_its_strand_is_sealed_waits_and_is_stored() {
    let mut bench = sealed();
    let publish = bench.send_publish("k", &[message("b")], None);
    assert_eq!(bench.publish_reply(publish), None);
    assert_eq!(bench.questions.len(), 1, "nobody claims a key that is here");
    bench.hold_registry = false;
    bench.pass_seconds(1);
    let reply = bench.publish_reply(publish);
    assert!(
        matches!(reply, Some(PublishReply::Stored { .. })),
        "{reply:?}"
    );
    assert_eq!(open_at(&bench), Some(Epoch(2)));
}

#[test]
fn a_new_leader_goes_on_with_what_is_sealed() {
    let mut bench = sealed();
    bench.change_leader();
    bench.hold_registry = false;
    bench.pass_seconds(1);
    assert_eq!(bench.view.rows_of::<Strand>(), 0);
    assert_eq!(bench.pins().len(), 0);
}

#[test]
fn the_answer_of_a_release_may_be_lost() {
    let mut bench = sealed();
    bench.carry_out_and_lose_question();
    assert_eq!(bench.pins().len(), 0);
    assert_eq!(bench.view.rows_of::<Sealed>(), 1);
    bench.hold_registry = false;
    bench.pass_seconds(1);
    assert_eq!(bench.view.rows_of::<Strand>(), 0);
}

#[test]
fn a_strand_opens_again_when_its_owner_got_a_fresh_epoch_meanwhile() {
    let mut bench = sealed();
    claim(&mut bench, SHARD, "k");
    bench.answer_question();
    assert_eq!(open_at(&bench), Some(Epoch(2)));
    let publish = bench.send_publish("k", &[message("b")], None);
    let reply = bench.publish_reply(publish);
    assert!(
        matches!(reply, Some(PublishReply::Stored { .. })),
        "{reply:?}"
    );
}

#[test]
fn a_key_that_another_shard_has_got_since_is_dropped_here() {
    let mut bench = sealed();
    bench.carry_out_and_lose_question();
    claim(&mut bench, ELSEWHERE, "k");
    let publish = bench.send_publish("k", &[message("b")], None);
    bench.hold_registry = false;
    bench.pass_seconds(1);
    assert_eq!(bench.view.rows_of::<Strand>(), 0);
    let moved = PublishReply::Moved {
        shard: ELSEWHERE,
        epoch: Epoch(2),
    };
    assert_eq!(bench.publish_reply(publish), Some(moved));
}

#[test]
fn what_is_sealed_since_before_a_later_ownership_is_dropped_not_opened() {
    let mut bench = sealed();
    bench.carry_out_and_lose_question();
    // Its pin has gone and the shard has got the key anew, by a claim that came late.
    claim(&mut bench, SHARD, "k");
    bench.pass_seconds(1);
    bench.answer_question();
    assert_eq!(bench.view.rows_of::<Strand>(), 0);
}

#[test]
fn an_answer_of_before_the_strand_was_opened_drops_nothing() {
    let mut bench = drained();
    let stale = engine::registry::Reply {
        pins: vec![None],
        as_of: Epoch(0),
        id_floor: model::MessageId::ZERO,
    };
    bench.pass(IDLE);
    bench.answer_question_with(stale);
    assert_eq!(bench.view.rows_of::<Strand>(), 1);
    assert_eq!(bench.view.rows_of::<Sealed>(), 1, "it is asked for again");
}

#[test]
fn a_publish_in_the_log_keeps_its_key_from_being_released() {
    let mut bench = drained();
    bench.pass(STRAND_IDLE - Duration::from_secs(5));
    bench.hold_log = true;
    let publish = bench.send_publish("k", &[message("b")], None);
    bench.pass(Duration::from_secs(60));
    bench.hold_log = false;
    bench.pass_seconds(1);
    let reply = bench.publish_reply(publish);
    assert!(
        matches!(reply, Some(PublishReply::Stored { .. })),
        "{reply:?}"
    );
    assert_eq!(open_at(&bench), Some(Epoch(1)));
}

#[test]
fn a_pin_whose_publishes_gave_up_goes_again() {
    let mut bench = Bench::new(settings(true));
    bench.hold_registry = true;
    let deadline = bench.now.plus(Duration::from_millis(100));
    bench.send_publish("k", &[message("a")], Some(deadline));
    bench.pass_seconds(1);
    bench.hold_registry = false;
    bench.pass_seconds(1);
    assert_eq!(bench.pins().len(), 0);
    assert_eq!(bench.publish("k", &["b"]).len(), 1);
}

//! What a move of a key promises, and what may go wrong in it.

use std::time::Duration;

use engine::dispatch::{AckReply, ModifyReply, MoveReply, PublishReply};
use engine::table::arrived::Arrived;
use engine::table::run::Run;
use engine::table::sealed::Sealed;
use engine::table::staged::{Staged, StagedItem};
use engine::table::strand::Strand;
use model::Epoch;

use crate::world::{EAST, LATE, SUB, WEST, World, number, settings, text};

const SECOND: Duration = Duration::from_secs(1);

/// A key in the west with three messages.
fn three() -> World {
    let mut world = World::new(settings(true, false));
    for text in ["a", "b", "c"] {
        world.publish("k", &[text]);
    }
    world
}

fn moved(world: &mut World, from: usize, to: usize) {
    let request = world.move_key(from, "k", to);
    world.pass(SECOND);
    assert_eq!(world.moved.get(&request), Some(&MoveReply::Moved));
    assert_eq!(world.pin("k").map(|pin| pin.shard), Some(number(to)));
}

/// Nothing is left of any move on its way.
fn assert_at_rest(world: &World) {
    for side in &world.sides {
        let view = &side.view;
        let rows = (
            view.rows_of::<Sealed>(),
            view.rows_of::<Staged>(),
            view.rows_of::<StagedItem>(),
        );
        assert_eq!(rows, (0, 0, 0));
        assert_eq!(view.payloads(), view.rows_of::<Run>(), "a payload a run");
    }
    let strands = world
        .sides
        .each_ref()
        .map(|side| side.view.rows_of::<Strand>());
    assert_eq!(strands.iter().sum::<usize>(), 1, "P7: one owner");
}

#[test]
fn a_moved_key_has_all_its_messages_in_order_and_goes_on_above_their_ids() {
    let mut world = three();
    let before = world.publish("k", &["d"]);
    moved(&mut world, WEST, EAST);
    assert_at_rest(&world);
    let after = world.publish("k", &["e"]);
    assert!(after > before, "P8: {after} after {before}");
    assert_eq!(after.shard(), number(EAST));
    world.stream(EAST);
    assert_eq!(world.texts(), ["a", "b", "c", "d", "e"]);
    world.stream(WEST);
    assert!(world.texts().is_empty());
}

#[test]
fn the_messages_of_a_request_are_found_though_others_lie_between_their_ids() {
    for exactly_once in [false, true] {
        let mut world = World::new(settings(true, exactly_once));
        world.publish("k", &["a", "b", "c"]);
        for text in ["x", "y", "z"] {
            world.send_publish(EAST, "here", &[text]);
        }
        moved(&mut world, WEST, EAST);
        world.stream(EAST);
        let mut received = world.take();
        received.retain(|delivered| delivered.ack.message.shard() == number(WEST));
        let texts: Vec<_> = received.iter().map(text).collect();
        assert_eq!(texts, ["a", "b", "c"], "P2");
        for delivered in &received {
            assert_eq!(world.ack(delivered), AckReply::Acknowledged);
        }
        world.change_leader(EAST);
        world.stream(EAST);
        world.pass(Duration::from_secs(60));
        let again = world.texts();
        assert!(
            again.iter().all(|text| "xyz".contains(&**text)),
            "P5: {again:?}"
        );
        assert_eq!(
            world.sides[EAST].view.rows_of::<Run>(),
            3,
            "of the other key"
        );
    }
}

#[test]
fn acks_of_before_the_move_hold_and_are_not_asked_for_again() {
    let mut world = three();
    let stream = world.stream(WEST);
    let received = world.take();
    assert_eq!(world.ack(&received[0]), AckReply::Acknowledged);
    assert_eq!(world.ack(&received[2]), AckReply::Acknowledged);
    moved(&mut world, WEST, EAST);
    let _ = stream;
    world.stream(EAST);
    let again: Vec<_> = world.texts();
    assert_eq!(
        again,
        ["b", "c"],
        "P5 and P3: the front, and what follows it"
    );
}

#[test]
fn an_ack_that_comes_after_the_move_counts_until_its_message_is_sent_again() {
    let mut world = three();
    world.stream(WEST);
    let received = world.take();
    moved(&mut world, WEST, EAST);
    assert_eq!(world.ack(&received[0]), AckReply::Acknowledged);
    world.stream(EAST);
    assert_eq!(world.texts(), ["b", "c"]);
}

#[test]
fn an_ack_of_before_that_a_redelivery_has_overtaken_changes_nothing() {
    let mut world = three();
    world.stream(WEST);
    let received = world.take();
    moved(&mut world, WEST, EAST);
    world.stream(EAST);
    assert_eq!(world.texts(), ["a", "b", "c"]);
    world.ack(&received[0]);
    world.pass(Duration::from_secs(60));
    assert!(world.texts().contains(&"a".into()), "it was not settled");
}

#[test]
fn a_key_moves_there_and_back() {
    let mut world = three();
    moved(&mut world, WEST, EAST);
    world.publish("k", &["d"]);
    world.stream(EAST);
    let received = world.take();
    assert_eq!(received.len(), 4);
    assert_eq!(world.ack(&received[0]), AckReply::Acknowledged);
    moved(&mut world, EAST, WEST);
    assert_at_rest(&world);
    world.publish("k", &["e"]);
    world.stream(WEST);
    let received = world.take();
    assert_eq!(
        received.iter().map(text).collect::<Vec<_>>(),
        ["b", "c", "d", "e"]
    );
    for delivered in &received {
        assert_eq!(world.ack(delivered), AckReply::Acknowledged);
    }
    assert_eq!(world.sides[WEST].view.rows_of::<Run>(), 0);
}

#[test]
fn subscriptions_without_order_get_what_they_have_not_settled() {
    let mut world = World::new(settings(false, false));
    for text in ["a", "b", "c"] {
        world.publish("k", &[text]);
    }
    // The east has ids above those of the west, so that its reader has passed them.
    for text in ["x", "y", "z", "u", "v"] {
        world.send_publish(EAST, "other", &[text]);
    }
    let other = world.stream(EAST);
    let received = world.take();
    for delivered in &received {
        world.ack(delivered);
    }
    let _ = other;
    world.stream(WEST);
    let received = world.take();
    assert_eq!(received.len(), 3);
    assert_eq!(world.ack(&received[1]), AckReply::Acknowledged);
    moved(&mut world, WEST, EAST);
    let again = world.take();
    assert_eq!(again.iter().map(text).collect::<Vec<_>>(), ["a", "c"]);
    world.change_leader(EAST);
    world.stream(EAST);
    let again = world.take();
    assert_eq!(again.len(), 2, "a new leader finds them too");
    for delivered in &again {
        assert_eq!(world.ack(delivered), AckReply::Acknowledged);
    }
    assert_eq!(world.sides[EAST].view.rows_of::<Run>(), 0);
    assert_eq!(world.sides[EAST].view.payloads(), 0);
}

#[test]
fn exactly_once_leases_and_ack_ids_of_before_stay_valid() {
    let mut world = World::new(settings(true, true));
    for text in ["a", "b"] {
        world.publish("k", &[text]);
    }
    world.change_leader(EAST);
    world.pass(Duration::from_secs(60));
    world.stream(WEST);
    let received = world.take();
    assert_eq!(received.len(), 2);
    moved(&mut world, WEST, EAST);
    world.stream(EAST);
    assert!(
        world.texts().is_empty(),
        "P6: no redelivery before its deadline"
    );
    let first = received[0].ack;
    assert_eq!(world.modify_at(WEST, first, 30), ModifyReply::Elsewhere);
    assert_eq!(world.modify_at(EAST, first, 30), ModifyReply::Modified);
    assert_eq!(world.ack(&received[0]), AckReply::Acknowledged);
    assert_eq!(
        world.ack(&received[0]),
        AckReply::Acknowledged,
        "it may be repeated"
    );
    world.pass(Duration::from_secs(12));
    assert_eq!(world.texts(), ["b"], "its lease has run out");
    assert_eq!(world.ack(&received[1]), AckReply::Stale);
}

#[test]
fn a_stream_keeps_what_a_move_has_brought_where_it_opens_again() {
    let mut world = World::new(settings(true, true));
    world.publish("k", &["a"]);
    let stream = world.stream(WEST);
    let received = world.take();
    moved(&mut world, WEST, EAST);
    world.stream_again(EAST, stream);
    world.pass(Duration::from_secs(5));
    assert!(world.texts().is_empty(), "P6: its client has it");
    assert_eq!(world.ack(&received[0]), AckReply::Acknowledged);
}

#[test]
fn an_exactly_once_ack_of_before_the_move_may_be_repeated_after_it() {
    let mut world = World::new(settings(true, true));
    world.publish("k", &["a"]);
    world.stream(WEST);
    let received = world.take();
    assert_eq!(world.ack(&received[0]), AckReply::Acknowledged);
    world.publish("k", &["b"]);
    moved(&mut world, WEST, EAST);
    assert_eq!(world.ack(&received[0]), AckReply::Acknowledged);
}

#[test]
fn a_publish_that_comes_during_the_move_is_told_where_the_key_is() {
    let mut world = three();
    world.lose_told = true;
    world.move_key(WEST, "k", EAST);
    let publish = world.send_publish(WEST, "k", &["d"]);
    assert_eq!(world.publish_reply(publish), None, "it waits");
    world.lose_told = false;
    world.pass(SECOND);
    let reply = world.publish_reply(publish);
    assert!(
        matches!(reply, Some(PublishReply::Moved { shard, .. }) if shard == number(EAST)),
        "{reply:?}"
    );
}

#[test]
fn a_move_waits_for_no_clock_and_asks_its_registry_group_once() {
    let mut world = three();
    let answered = world.answered;
    let request = world.move_key(WEST, "k", EAST);
    assert_eq!(world.moved.get(&request), Some(&MoveReply::Moved));
    assert_eq!(world.answered, answered + 1);
    assert_at_rest(&world);
}

#[test]
fn a_move_that_takes_too_long_is_undone_and_nothing_was_lost() {
    let mut world = three();
    world.stream(WEST);
    let received = world.take();
    world.lose_told = true;
    let request = world.move_key(WEST, "k", EAST);
    assert_eq!(world.ack_at(WEST, received[0].ack), AckReply::Elsewhere);
    let publish = world.send_publish(WEST, "k", &["d"]);
    world.pass(Duration::from_secs(3));
    assert_eq!(world.moved.get(&request), Some(&MoveReply::Undone));
    let reply = world.publish_reply(publish);
    assert!(
        matches!(reply, Some(PublishReply::Stored { .. })),
        "{reply:?}"
    );
    let pin = world.pin("k").unwrap();
    assert_eq!((pin.shard, pin.moved), (number(WEST), None));
    assert!(pin.epoch > Epoch(1), "an undo is a new epoch");
    let again = world.take();
    assert_eq!(
        again.iter().map(text).collect::<Vec<_>>(),
        ["a", "b", "c", "d"]
    );
    assert_eq!(world.ack(&again[0]), AckReply::Acknowledged);
    world.lose_told = false;
    moved(&mut world, WEST, EAST);
    world.pass(Duration::from_secs(10));
    assert_at_rest(&world);
    world.take();
    world.stream(EAST);
    assert_eq!(world.texts(), ["b", "c", "d"]);
}

#[test]
fn leaders_on_both_sides_may_change_at_any_moment() {
    for loses in 0..6 {
        let mut world = three();
        world.lose_told = loses > 0;
        world.registry_is_silent = loses > 3;
        world.move_key(WEST, "k", EAST);
        world.pass(Duration::from_millis(100 * loses));
        world.change_leader(if loses % 2 == 0 { WEST } else { EAST });
        world.lose_told = false;
        world.pass(Duration::from_millis(100));
        world.registry_is_silent = false;
        world.change_leader(WEST);
        world.change_leader(EAST);
        world.pass(Duration::from_secs(30));
        assert_at_rest(&world);
        world.stream(WEST);
        world.stream(EAST);
        assert_eq!(world.texts(), ["a", "b", "c"], "after {loses}");
        let publish = world.publish("k", &["d"]);
        assert!(publish.counter() > 3, "P8");
    }
}

#[test]
fn a_claim_answered_with_a_move_opens_the_copy_and_never_an_empty_strand() {
    let mut world = three();
    // The copy is whole, then the pin moves, and the east does not hear of it.
    world.registry_is_silent = true;
    world.move_key(WEST, "k", EAST);
    world.lose_told = true;
    world.registry_is_silent = false;
    world.pass(Duration::from_millis(500));
    assert_eq!(world.pin("k").map(|pin| pin.shard), Some(number(EAST)));
    assert_eq!(world.sides[EAST].view.rows_of::<Strand>(), 0);
    let publish = world.send_publish(EAST, "k", &["d"]);
    world.pass(Duration::from_secs(1));
    let reply = world.publish_reply(publish);
    let first = match reply {
        Some(PublishReply::Stored { first }) => first,
        other => panic!("{other:?}"),
    };
    assert!(first.counter() > 3, "P8");
    world.stream(EAST);
    assert_eq!(world.texts(), ["a", "b", "c", "d"]);
}

#[test]
fn a_subscription_that_the_copy_lacks_begins_behind_it() {
    for ordered in [true, false] {
        let mut world = three();
        world.attach(EAST, LATE, settings(ordered, false));
        moved(&mut world, WEST, EAST);
        world.attach(WEST, LATE, settings(ordered, false));
        world.publish("k", &["d"]);
        world.stream_of(EAST, LATE);
        assert_eq!(world.texts(), ["d"], "ordered: {ordered}");
    }
}

#[test]
fn a_copy_waits_for_a_subscription_that_its_source_knew() {
    let mut world = three();
    world.attach(WEST, LATE, settings(true, false));
    world.publish("k", &["d"]);
    // The catalogue of the east is older. It is compared, which brings what it lacks.
    moved(&mut world, WEST, EAST);
    assert!(world.compared.contains(&EAST));
}

#[test]
fn what_a_detached_subscription_leaves_behind_goes_also_after_a_move() {
    for ordered in [true, false] {
        let mut world = World::new(settings(ordered, false));
        for text in ["a", "b", "c"] {
            world.publish("k", &[text]);
        }
        for text in ["x", "y", "z", "u", "v"] {
            world.send_publish(EAST, "other", &[text]);
        }
        world.attach(WEST, LATE, settings(true, false));
        world.attach(EAST, LATE, settings(true, false));
        moved(&mut world, WEST, EAST);
        world.detach(EAST, SUB);
        world.pass(Duration::from_secs(30));
        let view = &world.sides[EAST].view;
        assert_eq!((view.rows_of::<Run>(), view.payloads()), (0, 0));
    }
}

#[test]
fn a_moved_key_is_released_like_any_other() {
    let mut world = three();
    moved(&mut world, WEST, EAST);
    world.stream(EAST);
    for delivered in world.take() {
        world.ack(&delivered);
    }
    world.pass(Duration::from_secs(700));
    assert_eq!(world.pin("k"), None);
    for side in &world.sides {
        let rows = (
            side.view.rows_of::<Strand>(),
            side.view.rows_of::<Arrived>(),
        );
        assert_eq!(rows, (0, 0));
    }
}

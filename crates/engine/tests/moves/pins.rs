//! Pins of which nothing is stored.

use std::time::Duration;

use engine::dispatch::{Input, MoveReply, PublishReply, TransferMessage};
use engine::registry::{Claim, Command};
use engine::table::strand::Strand;
use model::Epoch;

use crate::world::{EAST, WEST, World, key, number, settings};

/// A key that is pinned to the west, where nothing is stored: the answer to the claim was lost, or an
/// operator has pinned it. And the epoch of that pin.
fn pinned() -> (World, Epoch) {
    let mut world = World::new(settings(true, false));
    let claim = Command::Claim(Claim {
        shard: number(WEST),
        strands: vec![key("k")],
    });
    world.ask(&claim);
    let pin = world.pin("k").expect("it was claimed");
    assert_eq!(pin.shard, number(WEST));
    (world, pin.epoch)
}

/// The registry group asks the west after its pin.
fn ask_after(world: &mut World, epoch: Epoch) {
    let pins = vec![(key("k"), epoch)];
    let message = TransferMessage::OldPins { pins };
    let message = TransferMessage::decode(&message.encode());
    world.input(WEST, Input::Told(message.expect("it was encoded")));
}

fn assert_stored(world: &mut World, shard: usize) {
    let publish = world.send_publish(shard, "k", &["a"]);
    let reply = world.publish_reply(publish);
    assert!(
        matches!(reply, Some(PublishReply::Stored { .. })),
        "{reply:?}"
    );
}

#[test]
fn a_pin_of_which_nothing_is_stored_goes_when_its_key_is_to_move() {
    let (mut world, _) = pinned();
    let request = world.move_key(WEST, "k", EAST);
    assert_eq!(world.moved.get(&request), Some(&MoveReply::NotHere));
    assert_eq!(world.pin("k"), None, "whoever claims it next owns it");
    assert_stored(&mut world, EAST);
}

#[test]
fn an_old_pin_without_a_strand_goes_and_its_key_may_begin_anywhere() {
    let (mut world, epoch) = pinned();
    ask_after(&mut world, epoch);
    assert_eq!(world.pin("k"), None);
    assert_stored(&mut world, EAST);
    // Asked after once more, late: the pin is another one.
    ask_after(&mut world, epoch);
    let pin = world.pin("k").map(|pin| pin.shard);
    assert_eq!(pin, Some(number(EAST)));
}

#[test]
fn an_old_pin_with_a_strand_stays() {
    let (mut world, _) = pinned();
    assert_stored(&mut world, WEST);
    let pin = world.pin("k").expect("it is in use");
    ask_after(&mut world, pin.epoch);
    assert_eq!(world.pin("k"), Some(pin));
    assert_stored(&mut world, WEST);
}

#[test]
fn an_old_pin_that_somebody_is_about_to_use_stays() {
    let (mut world, epoch) = pinned();
    world.registry_is_silent = true;
    let publish = world.send_publish(WEST, "k", &["a"]);
    world.registry_is_silent = false;
    ask_after(&mut world, epoch);
    world.pass(Duration::from_secs(1));
    let reply = world.publish_reply(publish);
    assert!(
        matches!(reply, Some(PublishReply::Stored { .. })),
        "{reply:?}"
    );
    let pin = world.pin("k").map(|pin| pin.shard);
    assert_eq!(pin, Some(number(WEST)));
}

#[test]
fn a_key_that_moves_or_has_moved_stays_where_it_is() {
    let (mut world, _) = pinned();
    world.publish("k", &["a"]);
    world.lose_told = true;
    world.move_key(WEST, "k", EAST);
    let here = world.pin("k").expect("it is about to move");
    ask_after(&mut world, here.epoch);
    assert_eq!(world.pin("k"), Some(here));
    world.lose_told = false;
    world.pass(Duration::from_secs(1));
    let there = world.pin("k").expect("it has moved");
    assert_eq!(there.shard, number(EAST));
    ask_after(&mut world, here.epoch);
    ask_after(&mut world, there.epoch);
    assert_eq!(world.pin("k"), Some(there));
    let strands = world.sides.each_ref();
    let strands = strands.map(|side| side.view.rows_of::<Strand>());
    assert_eq!(strands, [0, 1]);
}

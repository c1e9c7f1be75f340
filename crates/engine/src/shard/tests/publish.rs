use super::*;
use crate::table::epoch_floor::{EpochFloor, EpochFloorKey};
use crate::table::run::Run;
use model::limits::STRAND_IDLE;

fn first_of(reply: Reply) -> u64 {
    match reply {
        Reply::Published { first, .. } => first.counter(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn ids_count_up_over_all_keys_and_without_a_subscription_nothing_is_kept() {
    let mut world = World::default();
    assert_eq!(first_of(world.publish(strand(1), 3)), 1);
    assert_eq!((world.view.rows_of::<Run>(), world.view.payloads()), (0, 0));
    world.attach(9, settings(true, false));
    assert_eq!(first_of(world.publish(strand(2), 2)), 4);
    assert_eq!(first_of(world.publish(strand(1), 1)), 6);
    assert_eq!((world.view.rows_of::<Run>(), world.view.payloads()), (2, 2));
    assert_eq!(world.next(9, strand(1)), Some(6));
}

#[test]
fn a_closed_topic_refuses_and_leaves_no_payload() {
    let mut world = World::default();
    world.attach(9, settings(true, false));
    world.publish(strand(1), 1);
    world.apply(Command::CloseTopic(CloseTopic { topic: TOPIC }));
    let refused = Reply::Rejected(Rejected::TopicClosed);
    assert_eq!(world.publish(strand(1), 1), refused);
    assert_eq!(world.view.payloads(), 1);
    assert_eq!(world.next(9, strand(1)), Some(1), "the backlog stays");
}

#[test]
fn an_older_epoch_is_fenced_and_a_newer_one_adopted() {
    let mut world = World::default();
    world.attach(9, settings(true, false));
    let mut at = |epoch| {
        let command = Publish {
            opening: opening(epoch),
            ..publish(strand(1), 1)
        };
        world.reply(Command::Publish(command))
    };
    assert_eq!(first_of(at(5)), 1);
    assert_eq!(first_of(at(7)), 2);
    let current = Epoch(7);
    assert_eq!(at(5), Reply::Rejected(Rejected::EpochFenced { current }));
    assert_eq!(first_of(at(7)), 3);
    assert_eq!(world.view.payloads(), 3);
}

#[test]
fn a_key_without_a_claim_is_refused_until_its_strand_is_open() {
    let mut world = World::default();
    world.attach(9, settings(true, false));
    let unclaimed = |key| Publish {
        opening: None,
        ..publish(key, 1)
    };
    let refused = world.reply(Command::Publish(unclaimed(strand(1))));
    assert_eq!(refused, Reply::Rejected(Rejected::Unclaimed));
    assert_eq!(world.view.payloads(), 0);
    assert_eq!(
        first_of(world.reply(Command::Publish(unclaimed(UNKEYED)))),
        1
    );
    assert_eq!(first_of(world.publish(strand(1), 1)), 2);
    assert_eq!(
        first_of(world.reply(Command::Publish(unclaimed(strand(1))))),
        3
    );
}

#[test]
fn a_strand_opens_only_above_the_epochs_of_those_that_went() {
    let mut world = World::default();
    let floor = Epoch(6);
    let mut overlay = Overlay::new(&world.view);
    overlay.put(&EpochFloorKey(REGISTRY), &EpochFloor { epoch: floor });
    let writes = overlay.into_writes();
    world.view.commit(writes);
    let mut at = |epoch| {
        let command = Publish {
            opening: opening(epoch),
            ..publish(strand(1), 1)
        };
        world.reply(Command::Publish(command))
    };
    assert_eq!(at(6), Reply::Rejected(Rejected::BelowFloor { floor }));
    assert_eq!(first_of(at(7)), 1);
}

#[test]
fn a_sealed_strand_reopens_only_while_its_shard_has_kept_the_key() {
    let mut world = World::default();
    world.attach(9, settings(true, false));
    world.publish(strand(1), 1);
    world.acknowledge(9, &[(strand(1), 1, None)]);
    world.time = world.time.plus(STRAND_IDLE);
    world.seal(strand(1), 1);
    let mut at = |epoch, since| {
        let since = Epoch(since);
        let opening = opening(epoch).map(|opening| Opening { since, ..opening });
        let command = Publish {
            opening,
            ..publish(strand(1), 1)
        };
        world.reply(Command::Publish(command))
    };
    let sealed = Reply::Rejected(Rejected::Sealed { at: Epoch(1) });
    assert_eq!(at(1, 1), sealed, "a seal is final for its epoch");
    assert_eq!(at(3, 3), sealed, "the key was elsewhere meanwhile");
    assert_eq!(first_of(at(3, 1)), 2);
}

#[test]
fn ids_go_on_above_the_floor_of_the_registry_group() {
    let mut world = World::default();
    let mut publish_above = |floor| {
        let opening = opening(1).map(|opening| Opening {
            id_floor: MessageId(floor),
            ..opening
        });
        let command = Publish {
            opening,
            ..publish(strand(1), 1)
        };
        match world.reply(Command::Publish(command)) {
            Reply::Published { first, .. } => first,
            other => panic!("{other:?}"),
        }
    };
    let elsewhere = MessageId::new(700, ShardNumber(9));
    let first = publish_above(elsewhere.0);
    assert!(first > elsewhere, "P8: {first} after {elsewhere}");
    assert_eq!(publish_above(elsewhere.0), first.plus(1));
}

#[test]
fn publish_time_never_goes_back() {
    let mut world = World::default();
    let mut publish_at = |nanos| {
        world.time = Timestamp(nanos);
        match world.publish(strand(1), 1) {
            Reply::Published { published, .. } => published.0,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(
        (publish_at(10), publish_at(4), publish_at(11)),
        (10, 10, 11)
    );
}

#[test]
fn an_older_version_of_the_settings_changes_nothing_and_order_is_fixed() {
    let mut world = World::default();
    world.attach(9, settings(true, false));
    let mut attach = |version, settings| {
        let subscription = Incarnation(9);
        world.apply(Command::Attach(Attach {
            topic: TOPIC,
            subscription,
            version,
            settings,
        }))
    };
    assert!(attach(1, settings(true, true)).effects.is_empty());
    assert_eq!(attach(2, settings(false, true)).effects.len(), 1);
    let now = world.backlog(9).attachment().settings.clone();
    assert!(now.ordered && now.exactly_once);
}

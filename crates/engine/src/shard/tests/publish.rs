use super::*;
use crate::table::run::Run;

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
        let epoch = Epoch(epoch);
        let command = Publish {
            epoch,
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

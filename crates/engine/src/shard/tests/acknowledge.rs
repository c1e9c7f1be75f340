use super::AckOutcome::{Acknowledged, Stale, Unordered};
use super::*;
use crate::table::holes::Holes;
use crate::table::lane::{Lane, LaneKey};
use crate::table::run::Run;
use crate::table::settled::Settled;
use crate::table::strand_run::StrandRun;
use model::limits::LANE_MARKS_MAX;

const KEY: KeyHash = strand(1);

fn lane(world: &World) -> Lane {
    use crate::kv::ViewExt;
    let key = LaneKey {
        topic: TOPIC,
        strand: KEY,
        subscription: Incarnation(9),
    };
    world.view.row(&key).unwrap().unwrap()
}

fn marks(world: &World) -> Vec<(u64, u64)> {
    let marks = lane(world).marks;
    marks
        .iter()
        .map(|(start, end)| (start.counter(), end.counter()))
        .collect()
}

#[test]
fn acks_behind_the_head_are_marks_that_join_within_the_key() {
    let mut world = World::default();
    world.attach(9, settings(true, false));
    for _ in 0..3 {
        world.publish(KEY, 2); // 1 2, 5 6, 9 10
        world.publish(strand(2), 2);
    }
    let mut ack = |message| world.acknowledge(9, &[(KEY, message, Some(1))]);
    assert_eq!(ack(9), [Acknowledged]);
    assert_eq!(ack(2), [Acknowledged]);
    assert_eq!(ack(6), [Acknowledged]);
    assert_eq!(
        marks(&world),
        [(2, 2), (6, 9)],
        "6 and 9 are neighbours in their key"
    );
    world.acknowledge(9, &[(KEY, 5, Some(1))]);
    assert_eq!(marks(&world), [(2, 9)]);
    assert_eq!(world.next(9, KEY), Some(1));
    world.acknowledge(9, &[(KEY, 1, Some(1))]);
    assert_eq!((lane(&world).position, marks(&world)), (id(9), vec![]));
    assert_eq!(world.next(9, KEY), Some(10));
}

#[test]
fn a_run_goes_when_the_last_subscription_has_settled_it() {
    let mut world = World::default();
    world.attach(8, settings(false, false));
    world.attach(9, settings(true, false));
    world.publish(KEY, 3);
    world.acknowledge(9, &[(KEY, 1, None), (KEY, 2, None), (KEY, 3, None)]);
    world.acknowledge(8, &[(KEY, 3, None), (KEY, 1, None)]);
    assert_eq!(world.view.payloads(), 1);
    world.acknowledge(8, &[(KEY, 2, None)]);
    let view = &world.view;
    let rows = [
        view.rows_of::<Run>(),
        view.rows_of::<StrandRun>(),
        view.rows_of::<Holes>(),
    ];
    assert_eq!((rows, view.payloads()), ([0, 0, 0], 0));
    assert_eq!(
        world.acknowledge(8, &[(KEY, 2, None)]),
        [Acknowledged],
        "once more"
    );
}

#[test]
fn a_lane_at_its_limit_of_marks_takes_no_more_but_joins() {
    let mut world = World::default();
    world.attach(9, settings(true, false));
    let marks_max = LANE_MARKS_MAX as u64;
    for messages in [LANE_MARKS_MAX, LANE_MARKS_MAX, 2] {
        world.publish(KEY, messages as u32);
    }
    for number in 1..=marks_max {
        assert_eq!(
            world.acknowledge(9, &[(KEY, 2 * number, Some(1))]),
            [Acknowledged]
        );
    }
    let last = 2 * marks_max;
    assert_eq!(world.acknowledge(9, &[(KEY, last + 2, Some(1))]), [Stale]);
    assert_eq!(
        world.acknowledge(9, &[(KEY, last + 1, Some(1))]),
        [Acknowledged]
    );
    let all: Vec<_> = (1..=last + 2)
        .rev()
        .map(|number| (KEY, number, Some(1)))
        .collect();
    assert!(
        world
            .acknowledge(9, &all)
            .iter()
            .all(|outcome| *outcome == Acknowledged)
    );
    assert_eq!((world.next(9, KEY), world.view.payloads()), (None, 0));
}

#[test]
fn an_exactly_once_ack_needs_the_live_lease_and_may_be_repeated() {
    let mut world = World::default();
    world.attach(9, settings(false, true));
    world.publish(KEY, 1);
    assert_eq!(
        world.acknowledge(9, &[(KEY, 1, Some(1))]),
        [Stale],
        "never leased"
    );
    world.grant(9, 1, 5);
    assert_eq!(
        world.acknowledge(9, &[(KEY, 1, Some(4))]),
        [Stale],
        "of an older delivery"
    );
    assert_eq!(world.acknowledge(9, &[(KEY, 1, Some(5))]), [Acknowledged]);
    assert_eq!(
        world.acknowledge(9, &[(KEY, 1, Some(5))]),
        [Acknowledged],
        "repeated"
    );
    assert_eq!(world.acknowledge(9, &[(KEY, 1, Some(4))]), [Stale]);
    assert_eq!(world.view.rows_of::<Settled>(), 1);
}

#[test]
fn ordered_exactly_once_acks_come_in_order_but_a_list_may_be_in_any() {
    let mut world = World::default();
    world.attach(9, settings(true, true));
    world.publish(KEY, 4);
    for message in 1..=4 {
        world.grant(9, message, message);
    }
    assert_eq!(world.acknowledge(9, &[(KEY, 2, Some(2))]), [Unordered]);
    let some = [(KEY, 4, Some(4)), (KEY, 2, Some(2)), (KEY, 1, Some(1))];
    assert_eq!(
        world.acknowledge(9, &some),
        [Unordered, Acknowledged, Acknowledged]
    );
    assert_eq!(world.next(9, KEY), Some(3));
}

#[test]
fn what_the_filter_does_not_want_takes_no_place_in_the_order() {
    let mut world = World::default();
    world.attach(9, settings(true, true));
    world.publish(KEY, 3);
    world.grant(9, 1, 1);
    world.grant(9, 3, 3);
    assert_eq!(world.acknowledge(9, &[(KEY, 2, None)]), [Acknowledged]);
    assert_eq!(world.acknowledge(9, &[(KEY, 3, Some(3))]), [Unordered]);
    let both = [(KEY, 1, Some(1)), (KEY, 3, Some(3))];
    assert_eq!(world.acknowledge(9, &both), [Acknowledged, Acknowledged]);
}

#[test]
fn a_message_from_before_the_subscription_is_not_its_own() {
    let mut world = World::default();
    world.attach(8, settings(true, false));
    world.publish(KEY, 1);
    world.attach(9, settings(false, false));
    assert_eq!(world.acknowledge(9, &[(KEY, 1, None)]), [Acknowledged]);
    assert_eq!(
        world.view.payloads(),
        1,
        "subscription 8 still waits for it"
    );
}

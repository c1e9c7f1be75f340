use super::AckOutcome::{Acknowledged, Stale};
use super::*;
use model::limits::LANE_REWINDS_MAX;

const KEY: KeyHash = strand(1);

fn world(messages: u32) -> World {
    let mut world = World::default();
    world.attach(9, settings(true, false));
    world.publish(KEY, messages);
    world
}

#[test]
fn a_rewind_erases_marks_and_makes_older_deliveries_stale() {
    let mut world = world(4);
    world.acknowledge(9, &[(KEY, 3, Some(3))]);
    world.rewind(9, KEY, 2, 10);
    assert_eq!(world.acknowledge(9, &[(KEY, 3, Some(3))]), [Stale]);
    assert_eq!(
        world.acknowledge(9, &[(KEY, 1, Some(1))]),
        [Acknowledged],
        "not sent again"
    );
    assert_eq!(world.next(9, KEY), Some(2));
    let again = [(KEY, 2, Some(10)), (KEY, 3, Some(11))];
    assert_eq!(world.acknowledge(9, &again), [Acknowledged, Acknowledged]);
    assert_eq!(world.acknowledge(9, &[(KEY, 4, Some(4))]), [Stale], "still");
}

#[test]
fn a_position_that_has_passed_does_not_go_back() {
    let mut world = world(2);
    world.acknowledge(9, &[(KEY, 1, Some(1))]);
    world.rewind(9, KEY, 1, 10);
    assert_eq!(world.next(9, KEY), Some(2));
    assert_eq!(world.acknowledge(9, &[(KEY, 2, Some(2))]), [Acknowledged]);
}

#[test]
fn a_rewind_within_a_mark_cuts_it() {
    let mut world = world(5);
    world.acknowledge(
        9,
        &[(KEY, 2, Some(2)), (KEY, 3, Some(3)), (KEY, 4, Some(4))],
    );
    world.rewind(9, KEY, 3, 10);
    world.acknowledge(9, &[(KEY, 1, Some(1))]);
    assert_eq!(world.next(9, KEY), Some(3));
}

#[test]
fn a_later_rewind_of_less_keeps_what_an_earlier_one_said() {
    let mut world = world(3);
    world.rewind(9, KEY, 1, 10); // sent again: 1 as 10, 2 as 11, 3 as 12
    world.rewind(9, KEY, 3, 20);
    assert_eq!(world.acknowledge(9, &[(KEY, 1, Some(9))]), [Stale]);
    assert_eq!(world.acknowledge(9, &[(KEY, 1, Some(10))]), [Acknowledged]);
    assert_eq!(world.acknowledge(9, &[(KEY, 3, Some(12))]), [Stale]);
    assert_eq!(world.acknowledge(9, &[(KEY, 2, Some(11))]), [Acknowledged]);
    assert_eq!(world.acknowledge(9, &[(KEY, 3, Some(20))]), [Acknowledged]);
}

#[test]
fn too_many_rewinds_refuse_more_and_never_less() {
    let messages = LANE_REWINDS_MAX as u64 + 1;
    let mut world = world(messages as u32);
    for message in 1..=messages {
        world.rewind(9, KEY, message, 10 * message);
    }
    for message in 1..=messages {
        let stale = [(KEY, message, Some(10 * message - 1))];
        assert_eq!(world.acknowledge(9, &stale), [Stale]);
    }
    assert_eq!(
        world.acknowledge(9, &[(KEY, 1, Some(19))]),
        [Stale],
        "1 and 2 are one"
    );
    assert_eq!(world.acknowledge(9, &[(KEY, 1, Some(20))]), [Acknowledged]);
    assert_eq!(world.acknowledge(9, &[(KEY, 3, Some(30))]), [Acknowledged]);
}

#[test]
fn an_exactly_once_lane_does_not_go_back() {
    let mut world = World::default();
    world.attach(9, settings(true, true));
    world.publish(KEY, 2);
    world.acknowledge(9, &[(KEY, 2, None)]);
    world.rewind(9, KEY, 1, 10);
    world.grant(9, 1, 1);
    assert_eq!(world.acknowledge(9, &[(KEY, 1, Some(1))]), [Acknowledged]);
    assert_eq!(world.next(9, KEY), None);
}

use super::LeaseOutcome::{Done, Stale};
use super::*;
use crate::table::delivery::Delivery;

const KEY: KeyHash = strand(1);

fn exactly_once() -> World {
    let mut world = World::default();
    world.attach(9, settings(true, true));
    world.publish(KEY, 2);
    world
}

fn extend(world: &mut World, message: u64, counter: u64) -> LeaseOutcome {
    let leases = vec![(id(message), generation(counter), Duration::from_secs(60))];
    let subscription = Incarnation(9);
    lease_outcome(world.reply(Command::Extend(Extend {
        subscription,
        leases,
    })))
}

#[test]
fn one_message_has_one_live_lease() {
    let mut world = exactly_once();
    assert_eq!(world.grant(9, 1, 1), Done { attempts: 0 });
    assert_eq!(world.grant(9, 1, 2), Stale);
    assert_eq!(
        world.fail(9, 1, 2, FailCause::Expiry),
        Stale,
        "not the lease that lives"
    );
    assert_eq!(world.fail(9, 1, 1, FailCause::Expiry), Done { attempts: 1 });
    assert_eq!(
        world.fail(9, 1, 1, FailCause::Nack),
        Stale,
        "it ended before"
    );
    assert_eq!(world.grant(9, 1, 3), Done { attempts: 1 });
    world.acknowledge(9, &[(KEY, 1, Some(3))]);
    assert_eq!(world.grant(9, 1, 4), Stale, "settled");
    assert_eq!(world.view.rows_of::<Delivery>(), 0);
}

#[test]
fn a_returned_delivery_is_no_attempt_and_leaves_no_row() {
    let mut world = exactly_once();
    world.grant(9, 1, 1);
    assert_eq!(
        world.fail(9, 1, 1, FailCause::Returned),
        Done { attempts: 0 }
    );
    assert_eq!(world.view.rows_of::<Delivery>(), 0);
}

#[test]
fn only_the_live_lease_is_extended() {
    let mut world = exactly_once();
    assert_eq!(extend(&mut world, 1, 1), Stale);
    world.grant(9, 1, 1);
    assert_eq!(extend(&mut world, 1, 2), Stale);
    assert_eq!(extend(&mut world, 1, 1), Done { attempts: 0 });
    let delivery = world.backlog(9).delivery(id(1)).unwrap().unwrap();
    let lease = delivery.lease.unwrap();
    assert_eq!(
        (lease.duration, lease.extended),
        (Duration::from_secs(60), true)
    );
}

#[test]
fn at_least_once_attempts_are_counted_until_the_message_is_settled() {
    let mut world = World::default();
    world.attach(9, settings(true, false));
    world.publish(KEY, 2);
    assert_eq!(world.fail(9, 2, 1, FailCause::Nack), Done { attempts: 1 });
    assert_eq!(world.fail(9, 2, 2, FailCause::Expiry), Done { attempts: 2 });
    world.acknowledge(9, &[(KEY, 2, Some(3))]);
    assert_eq!(world.fail(9, 2, 3, FailCause::Nack), Stale);
    assert_eq!(
        world.view.rows_of::<Delivery>(),
        1,
        "a mark may still be erased"
    );
    world.acknowledge(9, &[(KEY, 1, Some(1))]);
    assert_eq!(world.view.rows_of::<Delivery>(), 0);
}

#[test]
fn without_a_policy_nothing_is_counted() {
    let mut world = World::default();
    let retry = None;
    world.attach(
        9,
        SubscriptionSettings {
            retry,
            ..settings(true, false)
        },
    );
    world.publish(KEY, 1);
    assert_eq!(world.fail(9, 1, 1, FailCause::Nack), Done { attempts: 0 });
    assert_eq!(world.view.rows_of::<Delivery>(), 0);
}

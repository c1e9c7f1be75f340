use super::*;
use crate::table::delivery::Delivery;
use crate::table::detached::Detached;
use crate::table::lane::Lane;
use crate::table::run::Run;
use crate::table::settled::Settled;
use crate::table::settled_at::SettledAt;
use crate::table::strand::Strand;
use model::limits::{SETTLED_KEPT, STRAND_IDLE};

const KEY: KeyHash = strand(1);

/// Repeats a sweep until nothing is left; says how many steps it took.
fn sweep(world: &mut World, sweep: &Sweep) -> u32 {
    for steps in 1..1_000 {
        match world.reply(Command::Sweep(sweep.clone())) {
            Reply::Swept(Swept::All) => return steps,
            Reply::Swept(Swept::More) => (),
            other => panic!("{other:?}"),
        }
    }
    panic!("{sweep:?} never ends");
}

fn detached(subscription: u64) -> Sweep {
    Sweep::Detached {
        topic: TOPIC,
        subscription: Incarnation(subscription),
    }
}

fn acknowledge_all(world: &mut World, subscription: u64) {
    let runs = world.backlog(subscription).runs(MessageId::ZERO);
    let messages = runs.flat_map(|run| {
        let (key, run) = run.unwrap();
        (0..run.count)
            .map(move |number| (run.strand, key.first.counter() + u64::from(number), None))
    });
    let messages: Vec<_> = messages.collect();
    world.acknowledge(subscription, &messages);
}

#[test]
fn the_backlog_of_a_detached_subscription_goes_and_others_keep_theirs() {
    for (ordered, exactly_once) in [(true, false), (false, false), (true, true), (false, true)] {
        let mut world = World::default();
        world.publish(KEY, 1);
        world.attach(8, settings(true, false));
        world.attach(9, settings(ordered, exactly_once));
        for number in 0..400 {
            world.publish(strand(number as u8 % 3), 2);
        }
        // Finished, half finished, leased: each must be counted out exactly once.
        world.acknowledge(9, &[(strand(0), 2, None), (strand(0), 3, None)]);
        world.acknowledge(9, &[(strand(1), 4, None)]);
        world.grant(9, 10, 1);
        world.detach(9);
        world.publish(KEY, 1);
        assert!(
            sweep(&mut world, &detached(9)) > 3,
            "it is work for several steps"
        );
        assert_eq!(world.view.rows_of::<Run>(), 401);
        acknowledge_all(&mut world, 8);
        let view = &world.view;
        assert_eq!((view.rows_of::<Run>(), view.payloads()), (0, 0));
        assert_eq!(
            (view.rows_of::<Delivery>(), view.rows_of::<Detached>()),
            (0, 0)
        );
        assert_eq!(view.rows_of::<Lane>(), 2, "of subscription 8");
    }
}

#[test]
fn without_another_subscription_the_sweep_lets_go_of_the_runs() {
    let mut world = World::default();
    world.attach(9, settings(true, false));
    world.publish(KEY, 5);
    world.detach(9);
    world.detach(9);
    assert_eq!(world.view.payloads(), 1);
    sweep(&mut world, &detached(9));
    assert_eq!((world.view.payloads(), world.view.rows_of::<Run>()), (0, 0));
    assert_eq!(sweep(&mut world, &detached(9)), 1, "once more does no harm");
}

#[test]
fn a_detached_subscription_does_not_come_back() {
    let mut world = World::default();
    world.attach(9, settings(true, false));
    world.detach(9);
    let attach = Attach {
        topic: TOPIC,
        subscription: Incarnation(9),
        version: 2,
        settings: settings(true, false),
    };
    let refused = Reply::Rejected(Rejected::NotAttached);
    assert_eq!(world.reply(Command::Attach(attach)), refused);
}

#[test]
fn strands_without_a_key_go_when_they_are_drained_and_idle() {
    let mut world = World::default();
    world.attach(9, settings(true, false));
    world.publish(UNKEYED, 1);
    world.publish(KEY, 1);
    world.acknowledge(9, &[(KEY, 2, None)]);
    let idle = Sweep::IdleStrands {
        topic: TOPIC,
        from: read::FIRST_STRAND,
    };
    world.time = world.time.plus(STRAND_IDLE);
    sweep(&mut world, &idle);
    assert_eq!(
        world.view.rows_of::<Strand>(),
        2,
        "one has a message, the other has a pin"
    );
    world.acknowledge(9, &[(UNKEYED, 1, None)]);
    world.publish(UNKEYED, 1);
    world.acknowledge(9, &[(UNKEYED, 3, None)]);
    sweep(&mut world, &idle);
    assert_eq!(world.view.rows_of::<Strand>(), 2, "too young");
    world.time = world.time.plus(STRAND_IDLE);
    sweep(&mut world, &idle);
    assert_eq!(world.view.rows_of::<Strand>(), 1);
}

#[test]
fn a_long_list_of_strands_is_swept_in_steps() {
    let mut world = World::default();
    let strands = 2_500_u64;
    for number in 0..strands {
        let mut hash = [0; 16];
        hash[..8].copy_from_slice(&number.to_be_bytes());
        let publish = Publish {
            keyed: false,
            ..publish(KeyHash(hash), 1)
        };
        world.reply(Command::Publish(publish));
    }
    world.time = world.time.plus(STRAND_IDLE);
    let (topic, mut from, mut steps) = (TOPIC, read::FIRST_STRAND, 1);
    while let Reply::Swept(Swept::MoreFrom(next)) =
        world.reply(Command::Sweep(Sweep::IdleStrands { topic, from }))
    {
        (from, steps) = (next, steps + 1);
    }
    assert_eq!((world.view.rows_of::<Strand>(), steps), (0, 3));
}

#[test]
fn a_settled_ack_is_remembered_for_its_time() {
    let mut world = World::default();
    world.attach(9, settings(false, true));
    world.publish(KEY, 1);
    world.grant(9, 1, 1);
    world.acknowledge(9, &[(KEY, 1, Some(1))]);
    world.time = world.time.plus(SETTLED_KEPT);
    sweep(&mut world, &Sweep::Settled);
    let repeated = world.acknowledge(9, &[(KEY, 1, Some(1))]);
    assert_eq!(repeated, [AckOutcome::Acknowledged]);
    world.time = world.time.plus(Duration::from_nanos(1));
    sweep(&mut world, &Sweep::Settled);
    assert_eq!(
        world.acknowledge(9, &[(KEY, 1, Some(1))]),
        [AckOutcome::Stale]
    );
    let view = &world.view;
    assert_eq!(
        (view.rows_of::<Settled>(), view.rows_of::<SettledAt>()),
        (0, 0)
    );
}

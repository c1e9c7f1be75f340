use super::*;

/// How many messages a subscription has not settled, and the second in which the oldest came.
fn size(world: &World, subscription: u64) -> (u64, Option<u64>) {
    let size = world.backlog(subscription).size(usize::MAX).unwrap();
    assert!(!size.is_partial);
    let second = |time: Timestamp| time.0 / 1_000_000_000;
    (size.messages, size.oldest.map(second))
}

#[test]
fn what_is_not_acknowledged_counts_however_it_is_kept() {
    for ordered in [true, false] {
        for keyed in [strand(1), UNKEYED] {
            let mut world = World::default();
            world.publish(keyed, 1);
            world.attach(9, settings(ordered, false));
            assert_eq!(size(&world, 9), (0, None), "published before it took part");
            for second in 1..=3 {
                world.time = Timestamp(second * 1_000_000_000);
                world.publish(keyed, 2);
            }
            assert_eq!(size(&world, 9), (6, Some(1)));
            // Behind an unacknowledged one: settled, though the oldest stays.
            world.acknowledge(9, &[(keyed, 3, None), (keyed, 4, None)]);
            assert_eq!(size(&world, 9), (4, Some(1)));
            world.acknowledge(9, &[(keyed, 2, None)]);
            assert_eq!(size(&world, 9), (3, Some(2)));
            for message in 5..=7 {
                world.acknowledge(9, &[(keyed, message, None)]);
            }
            assert_eq!(size(&world, 9), (0, None));
        }
    }
}

/// As on the wire: field 2, attribute "a" or "b" with the value "1".
const A: Bytes = Bytes::from_static(b"\x12\x06\x0a\x01a\x12\x011");
const B: Bytes = Bytes::from_static(b"\x12\x06\x0a\x01b\x12\x011");

#[test]
fn what_the_filter_leaves_out_never_counts() {
    for keyed in [strand(1), UNKEYED] {
        let mut world = World::default();
        let filter = "attributes:a".to_owned();
        world.attach(
            9,
            SubscriptionSettings {
                filter,
                ..settings(true, false)
            },
        );
        for (second, messages) in [(1, vec![B]), (2, vec![B, A, A])] {
            world.time = Timestamp(second * 1_000_000_000);
            let count = messages.len() as u32;
            world.reply(Command::Publish(Publish {
                payload: RunPayload::new(&messages),
                ..publish(keyed, count)
            }));
        }
        // Nobody has pulled yet.
        assert_eq!(size(&world, 9), (2, Some(2)));
    }
}

#[test]
fn a_look_at_a_large_backlog_ends_and_says_so() {
    let mut world = World::default();
    world.attach(9, settings(true, false));
    for _ in 0..10 {
        world.publish(strand(1), 3);
    }
    let size = world.backlog(9).size(4).unwrap();
    assert_eq!((size.messages, size.is_partial), (12, true));
    let whole = world.backlog(9).size(10).unwrap();
    assert_eq!((whole.messages, whole.is_partial), (30, false));
}

//! One registry group in memory, and what its commands answer.

use std::time::Duration;

use model::limits::PIN_IDLE;
use model::{Epoch, Incarnation, KeyHash, MessageId, RegistryNumber, ShardNumber, Term};

use super::*;
use crate::command::{self, Proposal};
use crate::kv::Overlay;
use crate::kv::memory::MemoryView;
use crate::table::strand::StrandKey;

const HERE: ShardNumber = ShardNumber(1);
const THERE: ShardNumber = ShardNumber(2);
const MOVE: MoveId = MoveId {
    shard: HERE,
    term: Term(3),
    number: 1,
};

fn key(number: u8) -> StrandKey {
    StrandKey {
        topic: Incarnation(7),
        strand: KeyHash([number; 16]),
    }
}

fn pin(shard: ShardNumber, since: u64, epoch: u64) -> Option<Pin> {
    Some(Pin {
        shard,
        epoch: Epoch(epoch),
        since: Epoch(since),
        moved: None,
    })
}

#[derive(Default)]
struct World {
    view: MemoryView,
}

impl World {
    /// Applies a command as the log gives it back.
    fn apply(&mut self, command: Command) -> Reply {
        let proposal = Proposal {
            at: model::Timestamp(1),
            commands: vec![command::Command::Registry(command)],
        };
        let decoded = Proposal::decode(&proposal.encode()).unwrap();
        assert_eq!(decoded, proposal);
        let [command::Command::Registry(command)] = &decoded.commands[..] else {
            panic!("{decoded:?}");
        };
        let mut overlay = Overlay::new(&self.view);
        let reply = apply(&mut overlay, command).unwrap();
        let writes = overlay.into_writes();
        self.view.commit(writes);
        assert_eq!(Reply::decode(&reply.encode()).as_ref(), Some(&reply));
        reply
    }

    fn claim(&mut self, shard: ShardNumber, numbers: &[u8]) -> Vec<Option<Pin>> {
        let strands = numbers.iter().map(|number| key(*number)).collect();
        self.apply(Command::Claim(Claim { shard, strands })).pins
    }

    fn release(&mut self, shard: ShardNumber, epoch: u64, last: Option<u64>) -> Reply {
        let release = PinRelease {
            key: key(1),
            epoch: Epoch(epoch),
            last: last.map(MessageId),
        };
        let pins = vec![release];
        self.apply(Command::Release(Release { shard, pins }))
    }

    fn bind(&mut self, from: u64, to: ShardNumber, moved: Option<MoveId>, last: u64) -> Reply {
        let wanted = PinMove {
            key: key(1),
            from: Epoch(from),
            to,
            moved,
            last: MessageId(last),
        };
        let moves = vec![wanted];
        self.apply(Command::Move(MovePins { moves }))
    }
}

#[test]
fn the_first_claim_wins_and_its_owner_gets_fresh_epochs() {
    let mut world = World::default();
    assert_eq!(
        world.claim(HERE, &[1, 2]),
        [pin(HERE, 1, 1), pin(HERE, 2, 2)],
        "each key has an epoch of its own"
    );
    assert_eq!(
        world.claim(THERE, &[1, 3]),
        [pin(HERE, 1, 1), pin(THERE, 3, 3)]
    );
    assert_eq!(world.claim(HERE, &[1]), [pin(HERE, 1, 4)]);
}

#[test]
fn a_release_compares_epochs_and_leaves_its_last_id_as_the_floor() {
    let mut world = World::default();
    world.claim(HERE, &[1]);
    world.claim(HERE, &[1]);
    let refused = world.release(HERE, 1, Some(900));
    assert_eq!(
        (refused.pins, refused.id_floor.0),
        (vec![pin(HERE, 1, 2)], 0)
    );
    let released = world.release(HERE, 2, Some(900));
    assert_eq!((released.pins, released.id_floor.0), (vec![None], 900));
    assert_eq!(
        world.claim(THERE, &[1]),
        [pin(THERE, 3, 3)],
        "epochs are never given out again"
    );
    let late = world.release(HERE, 2, Some(900));
    assert_eq!(late.pins, [pin(THERE, 3, 3)], "a repeated release is late");
}

#[test]
fn a_moved_pin_names_its_copy_until_it_is_released_with_a_last_id() {
    let mut world = World::default();
    world.claim(HERE, &[1]);
    let moved = world.bind(1, THERE, Some(MOVE), 500);
    let there = |epoch| {
        Some(Pin {
            moved: Some(MOVE),
            ..pin(THERE, 2, epoch).unwrap()
        })
    };
    assert_eq!((moved.pins, moved.id_floor.0), (vec![there(2)], 500));
    assert_eq!(world.bind(1, HERE, None, 500).pins, [there(2)], "too late");
    assert_eq!(world.claim(THERE, &[1]), [there(3)]);
    let swept = world.release(THERE, 3, None);
    assert_eq!(swept.pins, [there(3)], "its messages wait to be activated");
    assert_eq!(world.release(THERE, 3, Some(600)).pins, [None]);
}

#[test]
fn an_undo_gives_the_old_owner_a_new_epoch_and_the_move_comes_too_late() {
    let mut world = World::default();
    world.claim(HERE, &[1]);
    assert_eq!(world.bind(1, HERE, None, 9).pins, [pin(HERE, 1, 2)]);
    assert_eq!(world.bind(1, THERE, Some(MOVE), 9).pins, [pin(HERE, 1, 2)]);
}

#[test]
fn a_pin_without_a_strand_is_swept_at_its_epoch_only() {
    let mut world = World::default();
    world.claim(HERE, &[1]);
    assert_eq!(world.release(THERE, 1, None).pins, [pin(HERE, 1, 1)]);
    assert_eq!(world.release(HERE, 1, None).pins, [None]);
    assert_eq!(world.view.rows_of::<Pin>(), 0);
}

#[test]
fn every_key_has_one_group_and_every_group_has_keys() {
    let registries = Registries::new(3);
    let groups: Vec<_> = registries.all().collect();
    assert_eq!(groups, [1, 2, 3].map(RegistryNumber));
    for group in groups {
        assert!((0..9).any(|number| registries.of(KeyHash([number; 16])) == group));
    }
}

/// How many pins are to be asked after at so many seconds.
fn asked_after(world: &World, sweep: &mut PinSweep, seconds: u64) -> usize {
    let now = model::Timestamp::ZERO.plus(Duration::from_secs(seconds));
    let found = sweep.look(&world.view, now).unwrap();
    found.values().map(Vec::len).sum()
}

#[test]
fn pins_are_asked_after_when_they_are_old_and_never_one_that_a_move_has_written() {
    let idle = PIN_IDLE.as_secs();
    let mut world = World::default();
    world.claim(HERE, &[1, 2, 3]);
    world.bind(1, THERE, Some(MOVE), 500);
    let mut sweep = PinSweep::default();
    assert_eq!(asked_after(&world, &mut sweep, 0), 0);
    world.claim(HERE, &[3, 4]);
    assert_eq!(asked_after(&world, &mut sweep, idle - 1), 0);
    let now = model::Timestamp::ZERO.plus(PIN_IDLE);
    let found = sweep.look(&world.view, now).unwrap();
    let old = PinsByShard::from([(HERE, vec![(key(2), Epoch(2))])]);
    assert_eq!(found, old, "the others were written since, or moved");
    assert_eq!(
        asked_after(&world, &mut sweep, 2 * idle),
        3,
        "in a later round those that were young, and again that one"
    );
}

#[test]
fn a_round_over_many_pins_takes_several_looks() {
    let many = |high: u8| {
        let keys = (0..=u8::MAX).map(move |low| StrandKey {
            topic: Incarnation(7),
            strand: KeyHash([[high, low]; 8].concat().try_into().unwrap()),
        });
        keys.collect()
    };
    let mut world = World::default();
    for high in 0..10 {
        let strands = many(high);
        world.apply(Command::Claim(Claim {
            shard: HERE,
            strands,
        }));
    }
    let mut sweep = PinSweep::default();
    assert_eq!(asked_after(&world, &mut sweep, 0), 0);
    let start = PIN_IDLE.as_secs();
    let looks: Vec<usize> = (start..start + 5)
        .map(|second| asked_after(&world, &mut sweep, second))
        .collect();
    assert_eq!(looks, [1_000, 1_000, 560, 0, 0]);
    assert_eq!(asked_after(&world, &mut sweep, start + 60), 1_000);
}

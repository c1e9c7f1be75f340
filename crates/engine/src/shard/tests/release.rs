//! The life of a strand's right to be written: sealed, reopened, dropped.

use super::*;
use crate::table::lane::Lane;
use crate::table::sealed::{Purpose, Sealed};
use crate::table::strand::{Strand, StrandKey};
use model::limits::STRAND_IDLE;

const KEY: KeyHash = strand(1);

impl World {
    /// Seals a strand at an epoch, to release it.
    pub(super) fn seal(&mut self, strand: KeyHash, epoch: u64) -> Option<Strand> {
        let seal = Seal {
            registry: REGISTRY,
            strands: vec![(strand_key(strand), Epoch(epoch))],
            purpose: Purpose::Release,
        };
        assert_eq!(self.reply(Command::Seal(seal)), Reply::Done);
        read::strand(&self.view, TOPIC, strand).unwrap()
    }

    fn drop_sealed(&mut self, epoch: u64) -> Option<Strand> {
        let drop = DropSealed {
            registry: REGISTRY,
            strands: vec![(strand_key(KEY), Epoch(epoch))],
        };
        assert_eq!(self.reply(Command::DropSealed(drop)), Reply::Done);
        read::strand(&self.view, TOPIC, KEY).unwrap()
    }

    fn reopen(&mut self, epoch: u64, since: u64) -> Strand {
        let since = Epoch(since);
        let opening = opening(epoch).map(|opening| Opening { since, ..opening });
        let strands = vec![(strand_key(KEY), opening.unwrap())];
        assert_eq!(self.reply(Command::Reopen(Reopen { strands })), Reply::Done);
        read::strand(&self.view, TOPIC, KEY).unwrap().unwrap()
    }

    fn floor(&self) -> Epoch {
        read::epoch_floor(&self.view, REGISTRY).unwrap()
    }

    fn publish_at(&mut self, epoch: u64) -> Reply {
        let opening = opening(epoch);
        let publish = publish(KEY, 1);
        self.reply(Command::Publish(Publish { opening, ..publish }))
    }
}

fn strand_key(strand: KeyHash) -> StrandKey {
    StrandKey {
        topic: TOPIC,
        strand,
    }
}

/// A strand at epoch 1 whose one message is acknowledged, and that nobody has used since.
fn idle() -> World {
    let mut world = World::default();
    world.attach(9, settings(true, false));
    world.publish(KEY, 1);
    world.acknowledge(9, &[(KEY, 1, None)]);
    world.time = world.time.plus(STRAND_IDLE);
    world
}

/// The same, sealed.
fn sealed() -> World {
    let mut world = idle();
    assert!(world.seal(KEY, 1).unwrap().sealed);
    world
}

#[test]
fn a_seal_looks_again_whether_the_strand_is_drained_and_idle() {
    let mut world = idle();
    world.publish(KEY, 1);
    assert!(!world.seal(KEY, 1).unwrap().sealed, "it has a message");
    world.acknowledge(9, &[(KEY, 2, None)]);
    assert!(!world.seal(KEY, 1).unwrap().sealed, "it was used just now");
    world.time = world.time.plus(STRAND_IDLE);
    assert!(world.seal(KEY, 1).unwrap().sealed);
    assert_eq!(world.view.rows_of::<Sealed>(), 1);
}

#[test]
fn a_seal_names_the_epoch_that_it_freezes() {
    let mut world = idle();
    assert!(!world.seal(KEY, 2).unwrap().sealed);
    assert!(world.seal(KEY, 1).unwrap().sealed);
    let sealed = Reply::Rejected(Rejected::Sealed { at: Epoch(1) });
    assert_eq!(world.publish_at(1), sealed, "a seal is final for its epoch");
}

#[test]
fn a_seal_that_finds_no_strand_raises_the_floor() {
    let mut world = World::default();
    assert_eq!(world.seal(KEY, 3), None);
    let floor = Epoch(3);
    let refused = Reply::Rejected(Rejected::BelowFloor { floor });
    assert_eq!(world.publish_at(3), refused);
    assert!(matches!(world.publish_at(4), Reply::Published { .. }));
}

#[test]
fn a_drop_acts_only_on_a_strand_that_is_sealed_at_exactly_its_epoch() {
    let mut world = idle();
    assert!(world.drop_sealed(1).is_some(), "it is open");
    world.seal(KEY, 1);
    assert!(world.drop_sealed(2).is_some(), "it is of another time");
    assert!(world.drop_sealed(0).is_some(), "it is of another time");
    assert_eq!(world.drop_sealed(1), None);
    let view = &world.view;
    assert_eq!((view.rows_of::<Sealed>(), view.rows_of::<Lane>()), (0, 0));
    assert_eq!(world.drop_sealed(1), None, "once more does no harm");
}

#[test]
fn what_was_dropped_never_opens_again_at_its_epoch() {
    let mut world = sealed();
    world.drop_sealed(1);
    assert_eq!(world.floor(), Epoch(1));
    let floor = Epoch(1);
    let refused = Reply::Rejected(Rejected::BelowFloor { floor });
    assert_eq!(world.publish_at(1), refused);
    let Reply::Published { first, .. } = world.publish_at(2) else {
        panic!("a fresh epoch opens it");
    };
    assert_eq!(first, id(2), "P8");
}

#[test]
fn a_sealed_strand_reopens_at_a_higher_epoch_of_the_same_ownership() {
    let mut world = sealed();
    assert!(world.reopen(1, 1).sealed, "that is the epoch of the seal");
    assert!(world.reopen(3, 2).sealed, "the key was elsewhere meanwhile");
    let open = world.reopen(3, 1);
    assert_eq!((open.sealed, open.epoch), (false, Epoch(3)));
    assert_eq!(world.view.rows_of::<Sealed>(), 0);
    assert!(matches!(world.publish_at(3), Reply::Published { .. }));
    assert_eq!(world.reopen(4, 1).epoch, Epoch(3), "it is not sealed");
}

#[test]
fn a_strand_that_reopens_goes_on_above_the_ids_that_its_key_had() {
    let mut world = sealed();
    let id_floor = MessageId::new(500, ShardNumber(8));
    let opening = opening(2).map(|opening| Opening {
        id_floor,
        ..opening
    });
    let strands = vec![(strand_key(KEY), opening.unwrap())];
    world.apply(Command::Reopen(Reopen { strands }));
    world.attach(8, settings(true, false));
    let after = world.backlog(8).attachment().after;
    assert!(after >= id_floor, "the counter is raised at once: {after}");
}

#[test]
fn a_sweep_of_an_absent_strand_raises_the_floor_and_leaves_others_alone() {
    let mut world = idle();
    let absent = |strand, epoch| {
        Command::SealAbsent(SealAbsent {
            registry: REGISTRY,
            strands: vec![(strand_key(strand), Epoch(epoch))],
        })
    };
    world.apply(absent(KEY, 1));
    assert_eq!(world.floor(), Epoch(0), "it is there");
    world.apply(absent(strand(2), 5));
    assert_eq!(world.floor(), Epoch(5));
}

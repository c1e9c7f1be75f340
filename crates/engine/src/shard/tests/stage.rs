//! Copies of strands, before they are opened.

use super::*;
use crate::registry::MoveId;
use crate::table::staged::{CopyHead, Staged, StagedItem, StagedKey};

const KEY: KeyHash = strand(1);

fn copy(epoch: u64) -> StagedKey {
    StagedKey {
        topic: TOPIC,
        strand: KEY,
        epoch: Epoch(epoch),
    }
}

/// One part of a copy of two lanes.
fn part(epoch: u64, term: u64, from: u64) -> Stage {
    let lane = StagedItem::Lane {
        subscription: Incarnation(from),
        lane: crate::table::lane::Lane::default(),
    };
    let head = CopyHead {
        items: 2,
        last: id(1),
        published: Timestamp(1),
        subscriptions: Vec::new(),
    };
    Stage {
        copy: copy(epoch),
        id: MoveId {
            shard: ShardNumber(8),
            term: Term(1),
            number: 1,
        },
        term: Term(term),
        from,
        items: vec![lane],
        head: (from == 1).then_some(head),
        payloads: Vec::new(),
    }
}

impl World {
    fn stage(&mut self, part: Stage) -> Option<Staged> {
        let key = part.copy;
        assert_eq!(self.reply(Command::Stage(part)), Reply::Done);
        crate::kv::ViewExt::row(&self.view, &key).unwrap()
    }
}

#[test]
fn parts_come_in_order_and_may_come_twice() {
    let mut world = World::default();
    assert_eq!(world.stage(part(1, 1, 1)), None, "the first one is missing");
    let items =
        |staged: Option<Staged>| staged.map(|staged| (staged.items, staged.whole.is_some()));
    assert_eq!(items(world.stage(part(1, 1, 0))), Some((1, false)));
    assert_eq!(items(world.stage(part(1, 1, 1))), Some((2, true)));
    assert_eq!(items(world.stage(part(1, 1, 1))), Some((2, true)));
    assert_eq!(
        items(world.stage(part(1, 2, 0))),
        Some((2, true)),
        "it is whole"
    );
}

#[test]
fn another_leader_of_the_source_begins_anew() {
    let mut world = World::default();
    world.stage(part(1, 1, 0));
    let staged = world.stage(part(1, 2, 1)).unwrap();
    assert_eq!((staged.term, staged.items), (Term(1), 1));
    let staged = world.stage(part(1, 2, 0)).unwrap();
    assert_eq!((staged.term, staged.items), (Term(2), 1));
    assert_eq!(world.view.rows_of::<StagedItem>(), 1);
}

#[test]
fn a_copy_that_comes_after_its_key_is_not_staged() {
    let mut world = World::default();
    world.reply(Command::Publish(Publish {
        opening: opening(5),
        ..publish(KEY, 1)
    }));
    assert_eq!(world.stage(part(4, 1, 0)), None, "it would stay for ever");
}

#[test]
fn a_copy_that_is_not_wanted_goes() {
    let mut world = World::default();
    world.stage(part(1, 1, 0));
    world.reply(Command::Unstage(Unstage { copy: copy(1) }));
    let view = &world.view;
    assert_eq!(
        (view.rows_of::<Staged>(), view.rows_of::<StagedItem>()),
        (0, 0)
    );
}

//! What commands cost, in reads of the state: a batch of acks must not pay for each of its ids what
//! one alone would.

use std::cell::Cell;

use super::*;
use crate::Fault;
use crate::kv::{RawRow, View};
use crate::table::run::PayloadAt;

const KEY: KeyHash = strand(1);

/// A state that counts how often it is looked into.
struct Counted<'v> {
    view: &'v MemoryView,
    reads: Cell<u32>,
}

impl Counted<'_> {
    fn count(&self) {
        self.reads.set(self.reads.get() + 1);
    }
}

impl View for Counted<'_> {
    fn get(&self, key: &[u8]) -> Result<Option<Bytes>, Fault> {
        self.count();
        self.view.get(key)
    }

    fn scan<'a>(
        &'a self,
        from: &[u8],
        to: &[u8],
    ) -> Box<dyn Iterator<Item = Result<RawRow, Fault>> + 'a> {
        self.count();
        self.view.scan(from, to)
    }

    fn floor(&self, from: &[u8], at: &[u8]) -> Result<Option<RawRow>, Fault> {
        self.count();
        self.view.floor(from, at)
    }

    fn payload(&self, at: PayloadAt) -> Result<RunPayload, Fault> {
        self.view.payload(at)
    }
}

/// How many reads it costs to acknowledge these messages at once.
fn reads(world: &World, messages: impl Iterator<Item = u64>) -> u32 {
    let messages = messages.map(|number| (KEY, id(number), Some(generation(1))));
    let acknowledge = Acknowledge {
        topic: TOPIC,
        subscription: Incarnation(9),
        messages: messages.collect(),
    };
    let at = At {
        shard: SHARD,
        term: 1,
        index: u64::MAX,
        payload_number: 0,
        time: world.time,
    };
    let view = Counted {
        view: &world.view,
        reads: Cell::new(0),
    };
    let mut overlay = Overlay::new(&view);
    let outcome = apply(&mut overlay, &Command::Acknowledge(acknowledge), at).unwrap();
    let Reply::Acknowledged(outcomes) = outcome.reply else {
        panic!("{outcome:?}");
    };
    let is_acknowledged = |outcome: &AckOutcome| *outcome == AckOutcome::Acknowledged;
    assert!(outcomes.iter().all(is_acknowledged));
    view.reads.get()
}

fn world(ordered: bool, runs: u32, count: u32) -> World {
    let mut world = World::default();
    world.attach(9, settings(ordered, false));
    for _ in 0..runs {
        world.publish(KEY, count);
        world.publish(strand(2), 1);
    }
    world
}

#[test]
fn acks_of_one_run_cost_as_much_as_one() {
    for ordered in [true, false] {
        let world = world(ordered, 1, 1_000);
        let one = reads(&world, 1..=1);
        assert!(one <= 12, "{one} reads for one ack");
        let all = reads(&world, (1..=1_000).rev());
        assert!(all <= one + 8, "{all} reads for 1,000 acks of one run");
        let every_other = reads(&world, (1..=500).map(|number| 2 * number));
        assert!(every_other <= one + 8, "{every_other} reads for 500 marks");
    }
}

#[test]
fn acks_of_many_runs_cost_a_few_reads_each() {
    for ordered in [true, false] {
        // The key's messages are 1, 3, 5, ...
        let world = world(ordered, 1_000, 1);
        let reads = reads(&world, (0..1_000).map(|number| 2 * number + 1));
        assert!(reads <= 4_100, "{reads} reads for 1,000 runs");
    }
}

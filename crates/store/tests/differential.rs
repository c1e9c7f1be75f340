//! The same random calls on RocksDB and on the disk in memory, crashes included: every answer is
//! the same. What holds in simulation so holds on a real disk.

mod rig;

use engine::kv::{View, Writes};
use engine::table::garbage::{Garbage, GarbageKey};
use engine::table::row_key;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use rig::*;
use store::{Payloads, Store};

/// Random sequences.
const SEEDS: u64 = 6;
/// Calls of one sequence.
const CALLS: usize = 150;

#[test]
fn both_disks_answer_alike() {
    for seed in 0..SEEDS {
        let mut random = StdRng::seed_from_u64(seed);
        let (mut real, mut memory) = (Rig::rocks(), Rig::memory());
        for rig in [&mut real, &mut memory] {
            let limits = rig.limits();
            limits.log_cache_bytes = 200;
            limits.payload_cache_bytes = 150;
            limits.purge_bytes = 60;
        }
        let mut stores = (real.first_start(), memory.first_start());
        for call in 0..CALLS {
            let step = Step::random(&mut random, &stores.1);
            if matches!(step, Step::Crash) {
                stores = (real.crash(stores.0), memory.crash(stores.1));
            }
            let answers = (step.run(&stores.0), step.run(&stores.1));
            assert_eq!(answers.0, answers.1, "seed {seed}, call {call}: {step:?}");
        }
    }
}

/// One call.
#[derive(Clone, Debug)]
enum Step {
    Append { term: u64, first: u64, count: u64 },
    Truncate { index: u64 },
    Vote(u8),
    Apply { term: u64, index: u64, rows: Writes },
    Flush,
    Purge { term: u64, index: u64 },
    Read { from: u64, to: u64, bytes: usize },
    Scan { from: u8, to: u8 },
    Crash,
}

impl Step {
    /// A call that is allowed in the present state.
    fn random(random: &mut StdRng, store: &Store) -> Self {
        let bounds = store.log_bounds(GROUP).unwrap();
        let end = bounds.last.map_or(0, |last| last.index + 1);
        let term = bounds.last.map_or(1, |last| last.term);
        let applied = store.applied(GROUP).unwrap();
        let next = applied.map_or(0, |applied| applied.at.index + 1);
        let flushed = store.flushed_applied(GROUP).unwrap();
        let purged = bounds.purged.map_or(0, |purged| purged.index);
        match random.random_range(0..20) {
            0..=4 => Step::Append {
                term: term + random.random_range(0..2),
                first: end,
                count: random.random_range(0..4),
            },
            5 if next > 0 && end > next => Step::Truncate {
                index: random.random_range(next - 1..end),
            },
            6 => Step::Vote(random.random()),
            7..=11 if next < end => {
                let index = random.random_range(next..end);
                Step::apply(random, term, index)
            }
            12 => Step::Flush,
            13..=14 => match flushed {
                Some(flushed) if flushed.index >= purged => Step::Purge {
                    term: flushed.term,
                    index: flushed.index,
                },
                _ => Step::Flush,
            },
            15 => Step::Crash,
            16..=17 => Step::Scan {
                from: random.random_range(0..8),
                to: random.random_range(0..14),
            },
            _ => Step::Read {
                from: random.random_range(0..end + 2),
                to: random.random_range(0..end + 3),
                bytes: random.random_range(0..300),
            },
        }
    }

    fn apply(random: &mut StdRng, term: u64, index: u64) -> Self {
        let mut rows = Writes::new();
        for _ in 0..random.random_range(0..4) {
            let key = vec![random.random_range(1..6), random.random_range(0..3)];
            let value = random.random_bool(0.7);
            rows.insert(key, value.then(|| index.to_string().into()));
        }
        if random.random_bool(0.3) && index > 0 {
            let key = row_key::<Garbage>(&GarbageKey(at(term, index - 1, 0)));
            rows.insert(key, Some("x".into()));
        }
        Step::Apply { term, index, rows }
    }

    /// Makes the call, and reads all that can be read.
    fn run(&self, store: &Store) -> String {
        let answer = match self.clone() {
            Step::Append { term, first, count } => {
                let log = entries(term, first..first + count);
                format!("{:?}", wait_for(|done| store.append(GROUP, log, done)))
            }
            Step::Truncate { index } => {
                format!(
                    "{:?}",
                    wait_for(|done| store.truncate_after(GROUP, index, done))
                )
            }
            Step::Vote(vote) => {
                let vote = vec![vote].into();
                format!("{:?}", wait_for(|done| store.save_vote(GROUP, vote, done)))
            }
            Step::Apply { term, index, rows } => {
                format!("{:?}", store.write_state(GROUP, applied(term, index), rows))
            }
            Step::Flush => format!("{:?}", store.flush_state()),
            Step::Purge { term, index } => {
                purge(store, GROUP, term, index);
                String::new()
            }
            Step::Read { from, to, bytes } => {
                let read = store.read_log(GROUP, from..to, bytes, Payloads::Joined);
                assert!(read.is_ok(), "{read:?}");
                format!("{read:?}")
            }
            Step::Scan { from, to } => {
                let view = store.view(GROUP).unwrap();
                let found = scan(&view, &[from], &[to]);
                format!("{found:?} {:?}", view.floor(&[from], &[to]))
            }
            Step::Crash => String::new(),
        };
        format!("{answer} {}", everything(store))
    }
}

/// What a store says of itself.
fn everything(store: &Store) -> String {
    let view = store.view(GROUP).unwrap();
    let bounds = store.log_bounds(GROUP).unwrap();
    let entries = whole_log(store, GROUP);
    let payloads: Vec<_> = (1..4)
        .flat_map(|term| (0..40).map(move |index| at(term, index, 0)))
        .filter(|at| view.payload(*at).is_ok())
        .collect();
    format!(
        "{bounds:?} {entries:?} {:?} {:?} {:?} {:?} {payloads:?}",
        store.vote(GROUP),
        store.applied(GROUP),
        store.flushed_applied(GROUP),
        scan(&view, &[0], &[255]),
    )
}

//! Random commands, against a model that keeps a set of messages for each thing there is to know.

use std::collections::{BTreeMap, BTreeSet};

use super::*;
use crate::table::delivery::Delivery;
use crate::table::run::Run;
use crate::table::strand_run::StrandRun;

const STRANDS: u8 = 3;
const UNSETTLED_MAX: usize = 14;

/// Splitmix64.
struct Chance(u64);

impl Chance {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ mixed >> 31) % bound
    }
}

/// One subscription, naively.
#[derive(Default)]
struct Naive {
    ordered: bool,
    exactly_once: bool,
    /// Everything published since the subscription began: message and strand.
    wanted: BTreeMap<u64, u8>,
    settled: BTreeSet<u64>,
    marks: BTreeSet<u64>,
    /// Every rewind ever: strand, message, delivery.
    rewinds: Vec<(u8, u64, u64)>,
    leases: BTreeMap<u64, u64>,
    attempts: BTreeMap<u64, u32>,
    settled_by: BTreeMap<u64, u64>,
}

impl Naive {
    fn in_lane(&self, strand: u8) -> bool {
        self.ordered && strand != 0
    }

    fn done(&self, message: u64) -> bool {
        self.settled.contains(&message)
            || self.marks.contains(&message)
            || !self.wanted.contains_key(&message)
    }

    fn unsettled_of(&self, strand: u8) -> impl Iterator<Item = u64> + '_ {
        let wanted = self.wanted.iter().filter(move |(_, of)| **of == strand);
        wanted
            .map(|(message, _)| *message)
            .filter(|message| !self.done(*message))
    }

    fn acknowledge(&mut self, strand: u8, message: u64, by: Option<u64>) -> AckOutcome {
        if self.done(message) {
            return match by {
                Some(by) if self.exactly_once && self.settled_by.get(&message) != Some(&by) => {
                    AckOutcome::Stale
                }
                _ => AckOutcome::Acknowledged,
            };
        }
        if let Some(by) = by {
            let head = self.unsettled_of(strand).next();
            if self.exactly_once && self.leases.get(&message) != Some(&by) {
                return AckOutcome::Stale;
            }
            if self.exactly_once && self.in_lane(strand) && head != Some(message) {
                return AckOutcome::Unordered;
            }
            let superseded =
                |(of, from, at): &(u8, u64, u64)| *of == strand && *from <= message && by < *at;
            if !self.exactly_once && self.rewinds.iter().any(superseded) {
                return AckOutcome::Stale;
            }
        }
        if let (true, Some(by)) = (self.exactly_once, by) {
            self.settled_by.insert(message, by);
            self.leases.remove(&message);
            self.attempts.remove(&message);
        }
        self.marks.insert(message);
        self.settle_marks(strand);
        AckOutcome::Acknowledged
    }

    /// Marks are for good once nothing unsettled stands before them.
    fn settle_marks(&mut self, strand: u8) {
        let head = match self.in_lane(strand) {
            true => self.unsettled_of(strand).next().unwrap_or(u64::MAX),
            false => u64::MAX,
        };
        let wanted = &self.wanted;
        let last: Vec<_> = self.marks.iter().copied().collect();
        for message in last.into_iter().filter(|message| *message < head) {
            if wanted[&message] == strand {
                self.marks.remove(&message);
                self.settled.insert(message);
                self.leases.remove(&message);
                self.attempts.remove(&message);
            }
        }
    }

    fn rewind(&mut self, strand: u8, from: u64, at: u64) {
        let passed = self
            .unsettled_of(strand)
            .next()
            .is_none_or(|head| head > from);
        let passed = passed && !self.marks.contains(&from);
        if self.exactly_once || passed || self.settled.contains(&from) {
            return;
        }
        self.rewinds.push((strand, from, at));
        let wanted = &self.wanted;
        self.marks
            .retain(|message| *message < from || wanted[message] != strand);
    }

    fn grant(&mut self, message: u64, by: u64) -> LeaseOutcome {
        if self.done(message) || self.leases.contains_key(&message) {
            return LeaseOutcome::Stale;
        }
        self.leases.insert(message, by);
        let attempts = self.attempts.get(&message).copied().unwrap_or(0);
        LeaseOutcome::Done { attempts }
    }

    fn fail(&mut self, message: u64, by: u64) -> LeaseOutcome {
        let live = match self.exactly_once {
            true => self.leases.get(&message) == Some(&by),
            false => !self.done(message),
        };
        if !live {
            return LeaseOutcome::Stale;
        }
        self.leases.remove(&message);
        let attempts = self.attempts.entry(message).or_default();
        *attempts += 1;
        LeaseOutcome::Done {
            attempts: *attempts,
        }
    }
}

/// The real shard and the model, side by side.
struct Pair {
    world: World,
    naive: BTreeMap<u64, Naive>,
    published: BTreeMap<u64, u8>,
    /// Deliveries count up.
    deliveries: u64,
    chance: Chance,
}

impl Pair {
    fn new(seed: u64) -> Self {
        let mut pair = Pair {
            world: World::default(),
            naive: BTreeMap::new(),
            published: BTreeMap::new(),
            deliveries: 10,
            chance: Chance(seed),
        };
        for (number, (ordered, exactly_once)) in
            [(true, false), (true, true), (false, false), (false, true)]
                .into_iter()
                .enumerate()
        {
            pair.world
                .attach(number as u64, settings(ordered, exactly_once));
            let naive = Naive {
                ordered,
                exactly_once,
                ..Naive::default()
            };
            pair.naive.insert(number as u64, naive);
        }
        pair
    }

    fn step(&mut self) {
        let subscription = self.chance.below(4);
        match self.chance.below(10) {
            0 | 1 => self.publish(),
            2..=5 => self.acknowledge(subscription),
            6 => self.rewind(subscription),
            7 | 8 => self.grant(subscription),
            _ => self.fail(subscription),
        }
    }

    fn publish(&mut self) {
        let strand_number = self.chance.below(u64::from(STRANDS)) as u8;
        let naive = self.naive.values();
        let unsettled = naive
            .map(|naive| naive.unsettled_of(strand_number).count())
            .max();
        if unsettled.unwrap() > UNSETTLED_MAX {
            return self.settle_strand(strand_number);
        }
        let count = 1 + self.chance.below(4) as u32;
        let reply = self.world.publish(strand(strand_number), count);
        let Reply::Published { first, .. } = reply else {
            panic!("{reply:?}")
        };
        for message in first.counter()..first.counter() + u64::from(count) {
            self.published.insert(message, strand_number);
            for naive in self.naive.values_mut() {
                naive.wanted.insert(message, strand_number);
            }
        }
    }

    /// The leader's right: it settles some messages from the front on.
    fn settle_strand(&mut self, strand_number: u8) {
        for (subscription, naive) in &mut self.naive {
            let some: Vec<_> = naive.unsettled_of(strand_number).take(8).collect();
            let messages: Vec<_> = some
                .iter()
                .map(|message| (strand(strand_number), *message, None))
                .collect();
            let expected: Vec<_> = some
                .iter()
                .map(|message| naive.acknowledge(strand_number, *message, None))
                .collect();
            assert_eq!(self.world.acknowledge(*subscription, &messages), expected);
        }
    }

    /// A recent message, or one that never was.
    fn message(&mut self) -> (u8, u64) {
        let newest = self.published.keys().next_back().copied().unwrap_or(0);
        let message = newest.saturating_sub(self.chance.below(40)).max(1);
        (self.published.get(&message).copied().unwrap_or(1), message)
    }

    fn delivery(&mut self, subscription: u64, message: u64) -> u64 {
        let leased = self.naive[&subscription].leases.get(&message).copied();
        let settled = self.naive[&subscription].settled_by.get(&message).copied();
        let recent = self.deliveries.saturating_sub(self.chance.below(10));
        match self.chance.below(5) {
            0 => recent,
            _ => leased.or(settled).unwrap_or(recent),
        }
    }

    fn acknowledge(&mut self, subscription: u64) {
        let mut messages = Vec::new();
        for _ in 0..=self.chance.below(6) {
            let (strand_number, message) = self.message();
            let by = self.delivery(subscription, message);
            let by = (self.chance.below(8) > 0).then_some(by);
            messages.push((strand(strand_number), message, by));
        }
        let outcomes = self.world.acknowledge(subscription, &messages);
        let naive = self.naive.get_mut(&subscription).unwrap();
        let mut in_order: Vec<_> = messages.iter().zip(&outcomes).collect();
        in_order.sort_by_key(|((strand, message, _), _)| (*strand, *message));
        for ((strand, message, by), outcome) in in_order {
            let expected = naive.acknowledge(strand.0[0], *message, *by);
            // Nothing was ever published to that key here: its owner must be asked.
            if *outcome == AckOutcome::Elsewhere {
                assert_eq!(
                    read::strand(&self.world.view, TOPIC, *strand).unwrap(),
                    None
                );
                continue;
            }
            assert_eq!(*outcome, expected, "{message} by {by:?} of {messages:?}");
        }
    }

    fn rewind(&mut self, subscription: u64) {
        let (strand_number, message) = self.message();
        let naive = self.naive.get_mut(&subscription).unwrap();
        if strand_number == 0 || !naive.ordered || !naive.wanted.contains_key(&message) {
            return;
        }
        self.deliveries += 1;
        naive.rewind(strand_number, message, self.deliveries);
        self.world.rewind(
            subscription,
            strand(strand_number),
            message,
            self.deliveries,
        );
    }

    fn grant(&mut self, subscription: u64) {
        let (_, message) = self.message();
        let naive = self.naive.get_mut(&subscription).unwrap();
        self.deliveries += 1;
        if naive.exactly_once {
            let expected = naive.grant(message, self.deliveries);
            assert_eq!(
                self.world.grant(subscription, message, self.deliveries),
                expected
            );
        }
    }

    fn fail(&mut self, subscription: u64) {
        let (_, message) = self.message();
        let by = self.delivery(subscription, message);
        let expected = self.naive.get_mut(&subscription).unwrap().fail(message, by);
        let outcome = self.world.fail(subscription, message, by, FailCause::Nack);
        assert_eq!(outcome, expected, "{message} of {subscription}");
    }

    fn compare(&self) {
        let mut deliveries = 0;
        for (subscription, naive) in &self.naive {
            let backlog = self.world.backlog(*subscription);
            for message in self.published.keys().rev().take(60) {
                let settled = backlog.is_settled(id(*message)).unwrap();
                assert_eq!(settled, naive.done(*message), "{message} of {subscription}");
                let delivery = backlog.delivery(id(*message)).unwrap().unwrap_or_default();
                let lease = delivery.lease.map(|lease| lease.generation.counter);
                assert_eq!(lease, naive.leases.get(message).copied());
                let attempts = naive.attempts.get(message).copied().unwrap_or(0);
                assert_eq!(delivery.attempts, attempts, "{message} of {subscription}");
            }
            for strand_number in (1..STRANDS).filter(|_| naive.ordered) {
                let head = naive.unsettled_of(strand_number).next();
                assert_eq!(self.world.next(*subscription, strand(strand_number)), head);
            }
            let both = naive.leases.keys().chain(naive.attempts.keys());
            deliveries += both.collect::<BTreeSet<_>>().len();
        }
        assert_eq!(self.world.view.rows_of::<Delivery>(), deliveries);
        self.compare_runs();
    }

    /// A run is stored exactly as long as some subscription has not settled all of it for good.
    fn compare_runs(&self) {
        let unsettled = |message: u64| {
            let mut naive = self.naive.values();
            naive.any(|naive| !naive.settled.contains(&message))
        };
        let view = &self.world.view;
        for row in read::runs(view, TOPIC, MessageId::ZERO) {
            let (key, run) = row.unwrap();
            let mut messages = key.first.counter()..=run.last(key.first).counter();
            assert!(messages.any(unsettled), "run {key:?} is stored for nobody");
        }
        for message in self
            .published
            .keys()
            .copied()
            .filter(|message| unsettled(*message))
        {
            assert!(
                read::run_of(view, TOPIC, id(message)).unwrap().is_some(),
                "{message} is gone"
            );
        }
        let runs = view.rows_of::<Run>();
        assert_eq!((view.rows_of::<StrandRun>(), view.payloads()), (runs, runs));
    }
}

#[test]
fn random_commands_do_what_a_naive_model_says() {
    for seed in 0..40 {
        let mut pair = Pair::new(seed);
        for step in 0..500 {
            pair.step();
            // Every outcome is compared at once; the rows now and then, since they are many.
            if step % 10 == 0 {
                pair.compare();
            }
        }
    }
}

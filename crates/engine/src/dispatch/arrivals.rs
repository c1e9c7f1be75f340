//! Keys that move here: copies that other shards send, until they are opened or not wanted.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use model::limits::{REGISTRY_KEYS_MAX, STAGING_MAX};
use model::{RegistryNumber, Timestamp};

use super::proposal::{Entry, Waiting};
use crate::Fault;
use crate::kv::View;
use crate::registry::{MoveId, Registries};
use crate::shard::{Activate, Command, Opening, Stage, Unstage, read};
use crate::table::staged::StagedKey;

/// How often the pin of a copy is asked for that nobody asks to be opened.
const LOOK_EVERY: Duration = Duration::from_secs(5);
/// The same for one that waits for the catalogue.
const LOOK_SOON: Duration = Duration::from_millis(200);

/// The copies of this shard.
#[derive(Debug)]
pub(super) struct Arrivals {
    registries: Registries,
    copies: BTreeMap<StagedKey, Arrival>,
    /// When the pins of copies are to be asked for.
    due: BTreeSet<(Timestamp, StagedKey)>,
    /// What is to be logged next.
    commands: VecDeque<(Command, Arriving)>,
}

/// One copy.
#[derive(Clone, Copy, Debug, Default)]
struct Arrival {
    /// A command about it is on its way through the log.
    is_logging: bool,
    /// The catalogue here is as new as the source's was.
    is_compared: bool,
    /// When its pin is to be asked for.
    due: Option<Timestamp>,
}

/// A command about a copy on its way through the log.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arriving {
    pub(super) copy: StagedKey,
    pub(super) what: ArrivingWhat,
}

/// Which one.
#[derive(Clone, Copy, Debug)]
pub(super) enum ArrivingWhat {
    Stage,
    Unstage,
    Activate { id: MoveId, opening: Opening },
}

impl Arrivals {
    /// Every copy that an earlier leader has left is work.
    pub(super) fn new(
        view: &dyn View,
        registries: Registries,
        now: Timestamp,
    ) -> Result<Self, Fault> {
        let mut arrivals = Arrivals {
            registries,
            copies: BTreeMap::new(),
            due: BTreeSet::new(),
            commands: VecDeque::new(),
        };
        for row in read::staged(view) {
            arrivals.look_at(row?.0, now);
        }
        Ok(arrivals)
    }

    /// Whether a command about a copy can go into the log: none is there, and not too many copies
    /// are on their way.
    pub(super) fn may_log(&self, copy: &StagedKey) -> bool {
        match self.copies.get(copy) {
            Some(arrival) => !arrival.is_logging,
            None => self.copies.len() < STAGING_MAX,
        }
    }

    pub(super) fn stage(&mut self, stage: Stage) {
        let copy = stage.copy;
        self.log(copy, ArrivingWhat::Stage, Command::Stage(stage));
    }

    pub(super) fn unstage(&mut self, copy: StagedKey) {
        let unstage = Command::Unstage(Unstage { copy });
        self.log(copy, ArrivingWhat::Unstage, unstage);
    }

    pub(super) fn activate(&mut self, id: MoveId, activate: Activate) {
        let opening = activate.opening;
        let what = ArrivingWhat::Activate { id, opening };
        self.log(activate.copy, what, Command::Activate(activate));
    }

    fn log(&mut self, copy: StagedKey, what: ArrivingWhat, command: Command) {
        self.copies.entry(copy).or_default().is_logging = true;
        self.commands.push_back((command, Arriving { copy, what }));
    }

    /// A command about a copy is through the log, and the copy is still there or not.
    pub(super) fn logged(&mut self, copy: StagedKey, is_there: bool, now: Timestamp) {
        if is_there {
            self.copies.entry(copy).or_default().is_logging = false;
            self.look_at(copy, now.plus(LOOK_EVERY));
        } else if let Some(Arrival { due: Some(at), .. }) = self.copies.remove(&copy) {
            self.due.remove(&(at, copy));
        }
    }

    /// Whether the catalogue here is known to be as new as the source's was when it sealed.
    pub(super) fn is_compared(&self, copy: &StagedKey) -> bool {
        self.copies
            .get(copy)
            .is_some_and(|arrival| arrival.is_compared)
    }

    /// The catalogue has been compared.
    pub(super) fn compared(&mut self, copy: &StagedKey, now: Timestamp) {
        if let Some(arrival) = self.copies.get_mut(copy) {
            arrival.is_compared = true;
            self.look_at(*copy, now);
        }
    }

    /// A copy waits for something: its pin is asked for again soon.
    pub(super) fn look_soon(&mut self, copy: StagedKey, now: Timestamp) {
        self.look_at(copy, now.plus(LOOK_SOON));
    }

    /// Nothing is to be done with a copy for now.
    pub(super) fn look_later(&mut self, copy: StagedKey, now: Timestamp) {
        self.look_at(copy, now.plus(LOOK_EVERY));
    }

    fn look_at(&mut self, copy: StagedKey, at: Timestamp) {
        let arrival = self.copies.entry(copy).or_default();
        if let Some(before) = arrival.due.replace(at) {
            self.due.remove(&(before, copy));
        }
        self.due.insert((at, copy));
    }

    pub(super) fn next_wake(&self) -> Option<Timestamp> {
        self.due.first().map(|(at, _)| *at)
    }

    /// The copies whose pins are to be asked for now, of one group.
    pub(super) fn take_due(&mut self, now: Timestamp) -> Option<(RegistryNumber, Vec<StagedKey>)> {
        let (_, first) = self.due.first().filter(|(at, _)| *at <= now)?;
        let registry = self.registries.of(first.strand);
        let due = self.due.iter().take_while(|(at, _)| *at <= now);
        let due = due.filter(|(_, copy)| self.registries.of(copy.strand) == registry);
        let taken: Vec<_> = due.take(REGISTRY_KEYS_MAX).copied().collect();
        for entry in &taken {
            self.due.remove(entry);
            self.copies.entry(entry.1).or_default().due = None;
        }
        Some((registry, taken.into_iter().map(|(_, copy)| copy).collect()))
    }

    /// Adds to an entry what is to be logged of copies.
    pub(super) fn propose(&mut self, entry: &mut Entry) {
        while !entry.is_full()
            && let Some((command, arriving)) = self.commands.pop_front()
        {
            entry.push(command, Waiting::Arrival(arriving));
        }
    }
}

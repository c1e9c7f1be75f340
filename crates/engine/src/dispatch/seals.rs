//! Strands that are being sealed, or are sealed: what is to be done next with each.
//!
//! All that must outlive a leader stands in the rows. Here is only what is on its way.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use model::limits::{REGISTRY_KEYS_MAX, SEALED_STRANDS_MAX};
use model::{Epoch, RegistryNumber, Timestamp};

use super::proposal::{Entry, Waiting};
use crate::Fault;
use crate::kv::View;
use crate::registry::Registries;
use crate::shard::{Command, DropSealed, Opening, Reopen, Seal, SealAbsent, read};
use crate::table::sealed::Purpose;
use crate::table::strand::StrandKey;

/// How soon a registry group is asked again about a strand that is still sealed.
const ASK_AGAIN_AFTER: Duration = Duration::from_millis(200);

/// What the leader does about sealed strands, and about pins that have none.
#[derive(Debug)]
pub(super) struct Seals {
    registries: Registries,
    /// Every strand that is frozen, or is about to be, and whether it is busy.
    strands: BTreeMap<StrandKey, State>,
    /// Sealed strands whose pins are to be asked for, and when.
    due: BTreeSet<(Timestamp, StrandKey)>,
    /// What is to be logged next.
    seals: BTreeMap<StrandKey, (Epoch, Purpose)>,
    absents: BTreeMap<StrandKey, Epoch>,
    drops: BTreeMap<StrandKey, Epoch>,
    reopens: BTreeMap<StrandKey, Opening>,
}

/// Where a strand stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// A command about it is to be logged, or on its way through the log.
    Logging,
    /// Its pin is to be asked for at this moment.
    Due(Timestamp),
    /// Its registry group is asked.
    Asked,
}

/// A command about strands on its way through the log. What became of each is in the rows.
#[derive(Debug)]
pub(super) enum Sealing {
    /// A seal, a drop, or a reopening.
    Strands(Vec<StrandKey>),
    /// [`SealAbsent`], with the epochs of the pins.
    Absent(Vec<(StrandKey, Epoch)>),
}

impl Seals {
    /// Every strand that an earlier leader has left sealed is work.
    pub(super) fn new(
        view: &dyn View,
        registries: Registries,
        now: Timestamp,
    ) -> Result<Self, Fault> {
        let mut seals = Seals {
            registries,
            strands: BTreeMap::new(),
            due: BTreeSet::new(),
            seals: BTreeMap::new(),
            absents: BTreeMap::new(),
            drops: BTreeMap::new(),
            reopens: BTreeMap::new(),
        };
        for row in read::sealed(view) {
            let (key, _) = row?;
            seals.is_sealed(key, now);
        }
        Ok(seals)
    }

    /// Whether publishes of a key wait, because its strand is sealed or about to be.
    pub(super) fn freezes(&self, key: &StrandKey) -> bool {
        self.strands.contains_key(key)
    }

    /// Whether as many strands are sealed as may be at once.
    pub(super) fn is_full(&self) -> bool {
        self.strands.len() >= SEALED_STRANDS_MAX
    }

    /// An open strand is to be sealed, unless that is under way.
    pub(super) fn want(&mut self, key: StrandKey, epoch: Epoch, purpose: Purpose) {
        if !self.freezes(&key) {
            self.strands.insert(key, State::Logging);
            self.seals.insert(key, (epoch, purpose));
        }
    }

    /// A pin of an epoch has no strand here. Of more than fit into one command, those that come late
    /// are found again.
    pub(super) fn is_absent(&mut self, key: StrandKey, epoch: Epoch) {
        if self.absents.len() < REGISTRY_KEYS_MAX {
            self.absents.insert(key, epoch);
        }
    }

    /// A strand is sealed: its pin must be asked for.
    pub(super) fn is_sealed(&mut self, key: StrandKey, at: Timestamp) {
        if let Some(State::Due(before)) = self.strands.insert(key, State::Due(at)) {
            self.due.remove(&(before, key));
        }
        self.due.insert((at, key));
    }

    /// Whether a command about a strand is on its way: it decides what becomes of the strand.
    pub(super) fn is_logging(&self, key: &StrandKey) -> bool {
        self.strands.get(key) == Some(&State::Logging)
    }

    /// Something has come that a sealed strand waited for.
    pub(super) fn ask_now(&mut self, key: &StrandKey, now: Timestamp) {
        if let Some(State::Due(at)) = self.strands.get(key).copied() {
            self.due.remove(&(at, *key));
            self.is_sealed(*key, now);
        }
    }

    /// A strand is sealed still, and nothing new is known of its pin.
    pub(super) fn ask_later(&mut self, key: StrandKey, now: Timestamp) {
        self.is_sealed(key, now.plus(ASK_AGAIN_AFTER));
    }

    /// A sealed strand is to go.
    pub(super) fn drop(&mut self, key: StrandKey, epoch: Epoch) {
        self.begin_logging(key);
        self.drops.insert(key, epoch);
    }

    /// A sealed strand is to open again.
    pub(super) fn reopen(&mut self, key: StrandKey, opening: Opening) {
        self.begin_logging(key);
        self.reopens.insert(key, opening);
    }

    fn begin_logging(&mut self, key: StrandKey) {
        if let Some(State::Due(at)) = self.strands.insert(key, State::Logging) {
            self.due.remove(&(at, key));
        }
    }

    /// A strand is not sealed any more, or never was.
    pub(super) fn forget(&mut self, key: &StrandKey) {
        if let Some(State::Due(at)) = self.strands.remove(key) {
            self.due.remove(&(at, *key));
        }
    }

    /// When a pin is to be asked for.
    pub(super) fn next_wake(&self) -> Option<Timestamp> {
        self.due.first().map(|(at, _)| *at)
    }

    /// The strands whose pins are to be asked for now, of one group, as many as fit into one
    /// question. They count as asked.
    pub(super) fn take_due(
        &mut self,
        now: Timestamp,
        may_ask: impl Fn(RegistryNumber) -> bool,
    ) -> Option<(RegistryNumber, Vec<StrandKey>)> {
        let due = self.due.iter().take_while(|(at, _)| *at <= now);
        let mut group = None;
        let mut taken = Vec::new();
        for (at, key) in due {
            let registry = self.registries.of(key.strand);
            if group.unwrap_or(registry) == registry && may_ask(registry) {
                group = Some(registry);
                taken.push((*at, *key));
            }
            if taken.len() == REGISTRY_KEYS_MAX {
                break;
            }
        }
        for entry in &taken {
            self.due.remove(entry);
            self.strands.insert(entry.1, State::Asked);
        }
        let keys = taken.into_iter().map(|(_, key)| key).collect();
        group.map(|registry| (registry, keys))
    }

    /// Adds to an entry what is to be logged of strands. A strand of which publishes wait for the
    /// log is sealed behind them.
    pub(super) fn propose(&mut self, queued: impl Fn() -> BTreeSet<StrandKey>, entry: &mut Entry) {
        if !self.seals.is_empty() {
            self.propose_seals(&queued(), entry);
        }
        let absents = std::mem::take(&mut self.absents);
        for (registry, strands) in by_group(self.registries, absents) {
            let waiting = Waiting::Seal(Sealing::Absent(strands.clone()));
            let absent = SealAbsent { registry, strands };
            entry.push(Command::SealAbsent(absent), waiting);
        }
        let drops = std::mem::take(&mut self.drops);
        for (registry, strands) in by_group(self.registries, drops) {
            let keys = strands.iter().map(|(key, _)| *key).collect();
            let drop = DropSealed { registry, strands };
            let waiting = Waiting::Seal(Sealing::Strands(keys));
            entry.push(Command::DropSealed(drop), waiting);
        }
        let strands: Vec<_> = std::mem::take(&mut self.reopens).into_iter().collect();
        if !strands.is_empty() {
            let keys = strands.iter().map(|(key, _)| *key).collect();
            let waiting = Waiting::Seal(Sealing::Strands(keys));
            entry.push(Command::Reopen(Reopen { strands }), waiting);
        }
    }

    /// Those that are released share a command; each that moves has one of its own.
    fn propose_seals(&mut self, queued: &BTreeSet<StrandKey>, entry: &mut Entry) {
        let mut released = BTreeMap::new();
        for (key, (epoch, purpose)) in std::mem::take(&mut self.seals) {
            if queued.contains(&key) {
                self.seals.insert(key, (epoch, purpose));
            } else if purpose == Purpose::Release {
                released.insert(key, epoch);
            } else {
                let registry = self.registries.of(key.strand);
                propose_seal(registry, vec![(key, epoch)], purpose, entry);
            }
        }
        for (registry, strands) in by_group(self.registries, released) {
            propose_seal(registry, strands, Purpose::Release, entry);
        }
    }
}

fn propose_seal(
    registry: RegistryNumber,
    strands: Vec<(StrandKey, Epoch)>,
    purpose: Purpose,
    entry: &mut Entry,
) {
    let keys = strands.iter().map(|(key, _)| *key).collect();
    let seal = Seal {
        registry,
        strands,
        purpose,
    };
    entry.push(Command::Seal(seal), Waiting::Seal(Sealing::Strands(keys)));
}

/// Strands by the group that has their pins.
fn by_group(
    registries: Registries,
    strands: BTreeMap<StrandKey, Epoch>,
) -> BTreeMap<RegistryNumber, Vec<(StrandKey, Epoch)>> {
    let mut groups: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for (key, epoch) in strands {
        let group = groups.entry(registries.of(key.strand)).or_default();
        group.push((key, epoch));
    }
    groups
}

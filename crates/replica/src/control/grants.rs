//! Which nodes may take their copy of the catalogue for the present one, as the control group's
//! leader knows it: the **catalogue leases**.
//!
//! A change is answered when every node that may have a lease has applied it and its shards'
//! leaders have logged it; a node that is gone holds changes up until its lease has run out, and
//! never again. No lease is granted to a node that lacks something that was answered, nor to one
//! that the log does not say is awake: so the next leader knows for whom it has to wait.

use std::collections::BTreeMap;
use std::time::Duration;

use model::{Boot, NodeId, Timestamp};

use super::request::{Granting, Renewal};

/// How long a lease lasts, counted by its node from the moment it asked.
const CATALOGUE_LEASE: Duration = Duration::from_secs(10);

/// What this leader adds before it takes a lease for run out: two clocks that run 1 % apart, which
/// no healthy machine reaches, stay within it.
const CLOCK_DRIFT_MAX: Duration = Duration::from_millis(100);

/// A node that keeps a change waiting for longer is not granted another lease until it has caught
/// up. So a node that lives but does not get on holds changes up for one lease at most.
const CHANGE_HELD_UP_MAX: Duration = Duration::from_secs(1);

/// How long a leader waits before it proposes again that a node is asleep. Without its quorum it is
/// refused at once, each time, until it hears that it leads no longer.
const DOZE_AGAIN_AFTER: Duration = Duration::from_millis(100);

/// One leadership's knowledge of all leases. Time is the leader's steady clock.
#[derive(Debug)]
pub(super) struct Grants {
    /// The nodes that are awake.
    holders: BTreeMap<NodeId, Holder>,
    /// Lives of nodes that are proposed to be awake.
    waking: BTreeMap<NodeId, Boot>,
    /// Entries with changes that are not known to everyone, and since when they are here.
    waiting: BTreeMap<u64, Timestamp>,
    /// The highest entry that was answered, by this leader or an earlier one.
    answered: u64,
}

/// A node that has a lease, had one, or may have one.
#[derive(Debug)]
struct Holder {
    /// Which life of the node it is.
    boot: Boot,
    /// Up to which entry the node has applied the catalogue, and its shards' leaders logged it.
    complete: u64,
    /// When the lease has run out for certain.
    until: Timestamp,
    /// When the node was heard of last.
    heard: Timestamp,
    /// Whether it is proposed to be asleep: from then on nothing is granted.
    dozes: bool,
    /// Before this moment it is not.
    doze_from: Timestamp,
}

/// What is to be done about a node that asks for its lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Renewing {
    /// To answer.
    Answer(Granting),
    /// To answer that it is not granted now, and to propose that the node is awake.
    Wake,
}

impl Grants {
    /// What a new leader has to presume: every node that is `awake` may hold a lease of an earlier
    /// leader, and everything up to `first`, the leadership's first entry, may have been answered.
    /// Up to `settled` every change is known to everyone; `last_change` may be later.
    pub(super) fn presume(
        awake: impl IntoIterator<Item = (NodeId, Boot)>,
        first: u64,
        settled: u64,
        last_change: u64,
        now: Timestamp,
    ) -> Self {
        let until = now.plus(CATALOGUE_LEASE + CLOCK_DRIFT_MAX);
        let holder = |(node, boot)| (node, Holder::new(boot, until, now));
        let awake = awake
            .into_iter()
            .filter(|_| !model::sabotage!("new-leader-presumes-no-lease"));
        Grants {
            holders: awake.map(holder).collect(),
            waking: BTreeMap::new(),
            waiting: match last_change > settled {
                true => BTreeMap::from([(settled + 1, now), (last_change, now)]),
                false => BTreeMap::new(),
            },
            answered: first,
        }
    }

    /// A change was applied here: it waits until every holder is complete up to `index`.
    pub(super) fn wait_for(&mut self, index: u64, now: Timestamp) {
        self.waiting.entry(index).or_insert(now);
    }

    /// Takes note of how far a node has come, and says whether it is granted its lease.
    pub(super) fn renew(&mut self, renewal: &Renewal, now: Timestamp) -> Renewing {
        let (node, boot) = (renewal.node, renewal.boot);
        let held_up = |(index, since): (&u64, &Timestamp)| {
            *index > renewal.complete && now.since(*since) > CHANGE_HELD_UP_MAX
        };
        let is_behind = renewal.complete < self.answered || self.waiting.iter().any(held_up);
        let holder = match self.holders.get_mut(&node) {
            Some(holder) if holder.boot > boot => {
                return Renewing::Answer(Granting::Superseded(holder.boot));
            }
            Some(holder) if holder.boot == boot => holder,
            earlier => {
                // Its process has ended, and the lease with it.
                earlier.into_iter().for_each(|holder| holder.until = now);
                return self.wake(node, boot);
            }
        };
        holder.heard = now;
        holder.complete = holder.complete.max(renewal.complete);
        if is_behind || holder.dozes {
            return Renewing::Answer(Granting::NotNow);
        }
        holder.until = now.plus(CATALOGUE_LEASE + CLOCK_DRIFT_MAX);
        Renewing::Answer(Granting::Granted(CATALOGUE_LEASE))
    }

    fn wake(&mut self, node: NodeId, boot: Boot) -> Renewing {
        if model::sabotage!("lease-without-awake") {
            return Renewing::Answer(Granting::Granted(CATALOGUE_LEASE));
        }
        match self.waking.insert(node, boot) {
            Some(waking) if waking == boot => Renewing::Answer(Granting::NotNow),
            _ => Renewing::Wake,
        }
    }

    /// It was proposed that this life of a node is awake. Now the log says so, or it was not done.
    pub(super) fn woken(&mut self, node: NodeId, boot: Boot, done: bool, now: Timestamp) {
        if self.waking.get(&node) == Some(&boot) {
            self.waking.remove(&node);
        }
        let is_news = self.holders.get(&node).is_none_or(|it| it.boot < boot);
        if done && is_news {
            self.holders.insert(node, Holder::new(boot, now, now));
        }
    }

    /// A node has given up the lease of this life. Answers whether the log should say so.
    pub(super) fn release(&mut self, node: NodeId, boot: Boot, now: Timestamp) -> bool {
        match self.holders.get_mut(&node) {
            Some(holder) if holder.boot == boot => {
                holder.until = now;
                !std::mem::replace(&mut holder.dozes, true)
            }
            _ => false,
        }
    }

    /// The nodes whose lease has run out and which are silent: each is to be proposed as asleep.
    pub(super) fn doze(&mut self, now: Timestamp) -> Vec<(NodeId, Boot)> {
        let due = |holder: &Holder| !holder.dozes && holder.silent_at() <= now;
        let holders = self.holders.iter_mut().filter(|(_, holder)| due(holder));
        let doze = holders.map(|(node, holder)| {
            holder.dozes = true;
            (*node, holder.boot)
        });
        doze.collect()
    }

    /// It was proposed that this life of a node is asleep, and now the log says so.
    pub(super) fn slept(&mut self, node: NodeId, boot: Boot) {
        if self.holders.get(&node).is_some_and(|it| it.boot == boot) {
            self.holders.remove(&node);
        }
    }

    /// It was proposed that this life of a node is asleep, and the log will not say so.
    pub(super) fn not_slept(&mut self, node: NodeId, boot: Boot, now: Timestamp) {
        let holder = self.holders.get_mut(&node);
        if let Some(holder) = holder.filter(|holder| holder.boot == boot) {
            holder.dozes = false;
            holder.doze_from = now.plus(DOZE_AGAIN_AFTER);
        }
    }

    /// Up to which entry everyone who may have a lease is complete.
    fn complete(&self, now: Timestamp) -> u64 {
        if model::sabotage!("answered-before-applied") {
            return u64::MAX;
        }
        let holders = self.holders.values().filter(|holder| holder.until > now);
        holders
            .map(|holder| holder.complete)
            .min()
            .unwrap_or(u64::MAX)
    }

    /// Takes the changes that can be answered now out of those that wait.
    pub(super) fn settle(&mut self, now: Timestamp) -> u64 {
        let complete = self.complete(now);
        let answered = self.waiting.range(..=complete).next_back();
        if let Some((&index, _)) = answered {
            self.answered = self.answered.max(index);
        }
        self.waiting.retain(|index, _| *index > complete);
        complete
    }

    /// Up to which entry every change is known to everyone who may have a lease, where `applied`
    /// is the last entry that this leader has applied.
    pub(super) fn settled(&self, applied: u64) -> u64 {
        match self.waiting.keys().next() {
            Some(first) => applied.min(first - 1),
            None => applied,
        }
    }

    /// When there is something to be done next: the lease of a node that holds a change up runs
    /// out, or a node has been silent for long enough.
    pub(super) fn next_end(&self, now: Timestamp) -> Option<Timestamp> {
        let last = self.waiting.keys().next_back().copied();
        let holding_up = |holder: &&Holder| {
            holder.until > now && last.is_some_and(|last| holder.complete < last)
        };
        let runs_out = self.holders.values().filter(holding_up);
        let runs_out = runs_out.map(|holder| holder.until);
        let waking = self.holders.values().filter(|holder| !holder.dozes);
        runs_out.chain(waking.map(Holder::silent_at)).min()
    }
}

impl Holder {
    fn new(boot: Boot, until: Timestamp, heard: Timestamp) -> Self {
        Holder {
            boot,
            complete: 0,
            until,
            heard,
            dozes: false,
            doze_from: heard,
        }
    }

    /// When the node has no lease any more and was not heard of for as long as one lasts, or is to
    /// be taken for silent once more.
    fn silent_at(&self) -> Timestamp {
        let silent = self.until.max(self.heard.plus(CATALOGUE_LEASE));
        silent.max(self.doze_from)
    }
}

#[cfg(test)]
mod tests;

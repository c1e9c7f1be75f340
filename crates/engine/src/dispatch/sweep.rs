//! Cleaning up: what detached subscriptions, idle strands and old ack records leave behind goes in
//! small steps, one in the log at a time.

use std::collections::BTreeSet;
use std::time::Duration;

use model::limits::{SETTLED_KEPT, SWEEP_ROWS_MAX};
use model::{Incarnation, KeyHash, Timestamp};

use super::pin::is_keyed;
use super::proposal::{Entry, Waiting};
use super::seals::Seals;
use super::step::Step;
use crate::Fault;
use crate::kv::View;
use crate::shard::{Command, Reply, Sweep, Swept, read};
use crate::table::sealed::Purpose;

/// How often the cleaner looks for strands and records that are too old.
const LOOK_EVERY: Duration = Duration::from_secs(10);

/// How soon it looks on where a look has not seen all of them.
const LOOK_ON_AFTER: Duration = Duration::from_millis(100);

/// A step that is in the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cleaning {
    Detached(Incarnation, Incarnation),
    IdleStrands,
    Settled,
}

/// What is to be cleaned up.
#[derive(Debug)]
pub(super) struct Cleaner {
    /// Detached subscriptions, with their topics.
    detached: BTreeSet<(Incarnation, Incarnation)>,
    /// A step is on its way through the log.
    is_busy: bool,
    next_look: Timestamp,
    /// What the last look has found.
    found: Option<(Sweep, Cleaning)>,
    /// The strand to look at next.
    at: (Incarnation, KeyHash),
    /// The newest stamp that was seen in the log, and when it was seen.
    stamp: (Timestamp, Timestamp),
}

impl Cleaner {
    /// Goes on where an earlier leader stopped.
    pub(super) fn new(view: &dyn View, now: Timestamp) -> Result<Self, Fault> {
        let mut detached = BTreeSet::new();
        for row in read::detached(view) {
            let (key, _) = row?;
            detached.insert((key.topic, key.subscription));
        }
        Ok(Cleaner {
            detached,
            is_busy: false,
            next_look: now.plus(LOOK_EVERY),
            found: None,
            at: (Incarnation(0), read::FIRST_STRAND),
            stamp: (Timestamp::ZERO, now),
        })
    }

    /// A subscription was detached.
    pub(super) fn detach(&mut self, topic: Incarnation, subscription: Incarnation) {
        self.detached.insert((topic, subscription));
    }

    /// When the cleaner has something to do though nothing happens.
    pub(super) fn next_wake(&self) -> Timestamp {
        self.next_look
    }

    /// Looks for what is too old, if it is time to.
    pub(super) fn look_if_due(&mut self, step: &Step<'_>, seals: &mut Seals) -> Result<(), Fault> {
        if self.next_look <= step.now {
            self.next_look = step.now.plus(LOOK_EVERY);
            self.found = self.look(step, seals)?;
        }
        Ok(())
    }

    /// Adds the next step to an entry, if there is one and none is under way.
    pub(super) fn propose(&mut self, entry: &mut Entry) {
        if self.is_busy {
            return;
        }
        let detached = self.detached.first().map(|&(topic, subscription)| {
            let sweep = Sweep::Detached {
                topic,
                subscription,
            };
            (sweep, Cleaning::Detached(topic, subscription))
        });
        if let Some((sweep, cleaning)) = detached.or_else(|| self.found.take()) {
            self.is_busy = true;
            entry.push(Command::Sweep(sweep), Waiting::Cleaner(cleaning));
        }
    }

    /// A step is through the log.
    pub(super) fn swept(&mut self, cleaning: Cleaning, reply: &Reply) {
        self.is_busy = false;
        if let Cleaning::Detached(topic, subscription) = cleaning
            && matches!(reply, Reply::Swept(Swept::All) | Reply::Rejected(_))
        {
            self.detached.remove(&(topic, subscription));
        }
        if let (Cleaning::Settled, Reply::Swept(Swept::More)) = (cleaning, reply) {
            self.next_look = Timestamp::ZERO;
        }
    }

    fn look(
        &mut self,
        step: &Step<'_>,
        seals: &mut Seals,
    ) -> Result<Option<(Sweep, Cleaning)>, Fault> {
        let time = self.time(step)?;
        let oldest = read::oldest_settled(step.view)?;
        if oldest.is_some_and(|oldest| oldest.plus(SETTLED_KEPT) <= time) {
            return Ok(Some((Sweep::Settled, Cleaning::Settled)));
        }
        self.look_at_strands(step, time, seals)
    }

    /// Looks at a number of strands. Those that are idle are released, and swept if they have no
    /// key.
    fn look_at_strands(
        &mut self,
        step: &Step<'_>,
        time: Timestamp,
        seals: &mut Seals,
    ) -> Result<Option<(Sweep, Cleaning)>, Fault> {
        if seals.is_full() {
            return Ok(None);
        }
        let (topic, from) = self.at;
        let mut looked = 0;
        let mut idle = false;
        for row in read::strands(step.view, topic, from) {
            let (key, strand) = row?;
            looked += 1;
            match strand.is_idle(time) {
                true if is_keyed(strand.epoch) => seals.want(key, strand.epoch, Purpose::Release),
                is_idle => idle |= is_idle,
            }
            if looked == SWEEP_ROWS_MAX {
                self.at = (topic, key.strand);
                break;
            }
        }
        if looked < SWEEP_ROWS_MAX {
            self.at = (next_topic(step.view, topic)?, read::FIRST_STRAND);
        }
        // Between two topics is a pause of a round; within one the look goes on soon.
        if looked == SWEEP_ROWS_MAX || self.at.0 > topic {
            self.next_look = step.now.plus(LOOK_ON_AFTER);
        }
        let sweep = Sweep::IdleStrands { topic, from };
        Ok(idle.then_some((sweep, Cleaning::IdleStrands)))
    }

    /// About what the next stamp of the log will be. The clock of the leader says how long ago the
    /// last one was, but not what it was.
    fn time(&mut self, step: &Step<'_>) -> Result<Timestamp, Fault> {
        let stamped = read::shard(step.view)?.time;
        if stamped != self.stamp.0 {
            self.stamp = (stamped, step.now);
        }
        Ok(stamped.plus(step.now.since(self.stamp.1)))
    }
}

/// The topic behind `topic`, or the first one.
fn next_topic(view: &dyn View, topic: Incarnation) -> Result<Incarnation, Fault> {
    for row in read::topics(view) {
        let (key, _) = row?;
        if key.topic > topic {
            return Ok(key.topic);
        }
    }
    Ok(Incarnation(0))
}

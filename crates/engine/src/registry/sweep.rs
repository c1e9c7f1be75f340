//! Finds pins of which their shards may have nothing.
//!
//! A pin is written before its strand is opened. Where the answer to a claim is lost and nobody
//! publishes again, or where an operator pins a key that is never used, the pin stays without a
//! strand. Its group does not know which ones these are: it asks after all that have not been
//! written for a while, few at a time, and their shards know. A shard that has nothing of a key
//! sees to it that no strand opens at that epoch, and only then has the pin removed, if it still
//! is at that epoch.
//!
//! A pin that a move has written is never asked after: what belongs to it is on its way.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use model::limits::{PIN_IDLE, SWEEP_ROWS_MAX};
use model::{Epoch, Incarnation, KeyHash, ShardNumber, Timestamp};

use super::{Pin, read};
use crate::Fault;
use crate::kv::View;
use crate::table::strand::StrandKey;

/// From the beginning of a round over all pins to that of the next, at least.
const ROUND_EVERY: Duration = Duration::from_secs(60);
/// How exactly the age of pins is known.
const SAMPLE_EVERY: Duration = Duration::from_secs(60);
/// Where a round begins.
const FIRST: StrandKey = StrandKey {
    topic: Incarnation(0),
    strand: KeyHash([0; 16]),
};

/// Pins by their shard, with their epochs.
pub type PinsByShard = BTreeMap<ShardNumber, Vec<(StrandKey, Epoch)>>;

/// One leader's walk over the pins of its group. In memory only: a new leader begins anew, and
/// finds nothing before it has led for [`PIN_IDLE`].
#[derive(Debug, Default)]
pub struct PinSweep {
    /// Epochs grow, so the newest one at a moment tells which pins are older than that. The last
    /// entry is the newest.
    newest: VecDeque<(Timestamp, Epoch)>,
    /// Pins up to this epoch are old.
    old: Epoch,
    /// The pin to look at next; `None` between two rounds.
    at: Option<StrandKey>,
    next_round: Timestamp,
}

impl PinSweep {
    /// Looks at the next pins: those that are to be asked after. `now` never goes back.
    ///
    /// # Errors
    /// [`Fault`] when the state can't be read.
    pub fn look(&mut self, view: &dyn View, now: Timestamp) -> Result<PinsByShard, Fault> {
        self.sample(view, now)?;
        let mut found = PinsByShard::new();
        let from = match self.at {
            Some(at) => at,
            None if self.old == Epoch(0) || now < self.next_round => return Ok(found),
            None => {
                self.next_round = now.plus(ROUND_EVERY);
                FIRST
            }
        };
        self.at = None;
        for (looked, row) in read::pins(view, from).enumerate() {
            let (key, pin) = row?;
            if looked == SWEEP_ROWS_MAX {
                self.at = Some(key);
                break;
            }
            if self.is_to_be_asked_after(&pin) {
                found.entry(pin.shard).or_default().push((key, pin.epoch));
            }
        }
        Ok(found)
    }

    fn is_to_be_asked_after(&self, pin: &Pin) -> bool {
        pin.epoch <= self.old && pin.moved.is_none()
    }

    fn sample(&mut self, view: &dyn View, now: Timestamp) -> Result<(), Fault> {
        let last = self.newest.back();
        if last.is_none_or(|(at, _)| at.plus(SAMPLE_EVERY) <= now) {
            let epoch = read::counters(view)?.epoch;
            self.newest.push_back((now, epoch));
        }
        while let Some((at, epoch)) = self.newest.front().copied()
            && at.plus(PIN_IDLE) <= now
        {
            self.old = epoch;
            self.newest.pop_front();
        }
        Ok(())
    }
}

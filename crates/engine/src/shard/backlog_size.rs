//! How large a backlog is, for those who watch it.

use std::collections::BTreeMap;

use model::{KeyHash, MessageId, Timestamp};

use super::Backlog;
use crate::Fault;
use crate::table::lane::Lane;
use crate::table::run::{Run, RunKey};

/// What a subscription has not settled on one shard.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BacklogSize {
    /// Messages that are not acknowledged: not delivered yet, or outstanding.
    pub messages: u64,
    /// When the oldest of them was published.
    pub oldest: Option<Timestamp>,
    /// Whether the look ended early, so that there may be more messages.
    pub is_partial: bool,
    /// How many runs were looked at.
    pub runs: usize,
}

impl Backlog<'_> {
    /// Looks at the oldest `runs_max` runs of the topic that are stored, and counts what the
    /// subscription has not settled of them. A message that its filter does not want counts until
    /// it was passed over, which happens as soon as somebody pulls.
    ///
    /// # Errors
    /// [`Fault`] when the state can't be read.
    pub fn size(&self, runs_max: usize) -> Result<BacklogSize, Fault> {
        let mut size = BacklogSize::default();
        let mut lanes = BTreeMap::new();
        for run in self.runs(MessageId::ZERO) {
            if size.runs == runs_max {
                size.is_partial = true;
                break;
            }
            size.runs += 1;
            let (key, run) = run?;
            let unsettled = self.unsettled(key, &run, &mut lanes)?;
            if unsettled > 0 {
                size.messages += unsettled;
                size.oldest.get_or_insert(run.published);
            }
        }
        Ok(size)
    }

    /// How many messages of a run are not settled.
    fn unsettled(
        &self,
        key: RunKey,
        run: &Run,
        lanes: &mut BTreeMap<KeyHash, Lane>,
    ) -> Result<u64, Fault> {
        let numbers = 0..u64::from(run.count);
        if !self.in_lane(run) {
            let holes = self.holes(key)?;
            let settled = |number: &u64| holes.as_ref().is_some_and(|it| it.has(*number));
            return Ok(numbers.filter(|number| !settled(number)).count() as u64);
        }
        let lane = match lanes.get(&run.strand) {
            Some(lane) => lane,
            None => {
                let lane = self.lane(run.strand)?;
                lanes.entry(run.strand).or_insert(lane)
            }
        };
        let message = |number: u64| MessageId::new(key.first.counter() + number, key.first.shard());
        let settled = |number: &u64| lane.covers(message(*number));
        Ok(numbers.filter(|number| !settled(number)).count() as u64)
    }
}

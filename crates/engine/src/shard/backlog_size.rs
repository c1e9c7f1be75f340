//! How large a backlog is, for those who watch it.

use std::collections::BTreeMap;

use model::{KeyHash, MessageId, Timestamp};

use super::{Backlog, read};
use crate::Fault;
use crate::filter::Filter;
use crate::table::lane::Lane;
use crate::table::run::{Run, RunKey};

/// What a look at the messages of a run counts for, beside one at its row: attributes are read from
/// the payload, of up to ten megabytes.
pub const PAYLOAD_RUNS: usize = 16;

/// What a subscription has not settled on one shard.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BacklogSize {
    /// Messages that are not acknowledged: not delivered yet, or outstanding.
    pub messages: u64,
    /// When the oldest of them was published.
    pub oldest: Option<Timestamp>,
    /// Whether the look ended early, so that there may be more messages.
    pub is_partial: bool,
    /// How many runs were looked at; [`PAYLOAD_RUNS`] for each whose messages were.
    pub runs: usize,
}

impl Backlog<'_> {
    /// Looks at the oldest `runs_max` runs of the topic that are stored, and counts what the
    /// subscription has not settled of them and its filter wants: others never count, whether they
    /// were passed over yet or not.
    ///
    /// # Errors
    /// [`Fault`] when the state can't be read.
    pub fn size(&self, runs_max: usize) -> Result<BacklogSize, Fault> {
        let mut size = BacklogSize::default();
        let mut lanes = BTreeMap::new();
        let filter = Filter::stored(&self.attachment().settings.filter)?;
        for run in self.runs(MessageId::ZERO) {
            if size.runs >= runs_max {
                size.is_partial = true;
                break;
            }
            size.runs += 1;
            let (key, run) = run?;
            let mut unsettled = self.unsettled(key, &run, &mut lanes)?;
            if !filter.is_empty() && !unsettled.is_empty() {
                size.runs += PAYLOAD_RUNS - 1;
                self.keep_wanted(&filter, key, &run, &mut unsettled)?;
            }
            if !unsettled.is_empty() {
                size.messages += unsettled.len() as u64;
                size.oldest.get_or_insert(run.published);
            }
        }
        Ok(size)
    }

    /// Leaves out the messages of a run that the filter does not want.
    fn keep_wanted(
        &self,
        filter: &Filter,
        key: RunKey,
        run: &Run,
        unsettled: &mut Vec<u64>,
    ) -> Result<(), Fault> {
        // It is settled by now, all of it.
        let Some(payload) = read::payload(self.view, key, run)? else {
            unsettled.clear();
            return Ok(());
        };
        let wanted: Vec<bool> = payload
            .messages()
            .map(|message| filter.wants(&message))
            .collect();
        unsettled.retain(|number| wanted.get(*number as usize).is_some_and(|wanted| *wanted));
        Ok(())
    }

    /// The messages of a run that are not settled, by their place in it.
    fn unsettled(
        &self,
        key: RunKey,
        run: &Run,
        lanes: &mut BTreeMap<KeyHash, Lane>,
    ) -> Result<Vec<u64>, Fault> {
        let numbers = 0..u64::from(run.count);
        if !self.in_lane(run) {
            let holes = self.holes(key)?;
            let settled = |number: &u64| holes.as_ref().is_some_and(|it| it.has(*number));
            return Ok(numbers.filter(|number| !settled(number)).collect());
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
        Ok(numbers.filter(|number| !settled(number)).collect())
    }
}

//! The stored runs of one strand from a message on.

use model::{Incarnation, KeyHash, MessageId};

use crate::Fault;
use crate::kv::{View, ViewExt};
use crate::shard::read;
use crate::table::run::{Run, RunKey};
use crate::table::strand_run::{StrandRun, StrandRunKey};

/// Goes through the runs that have a message at or after `at`.
pub(super) struct Walk<'v> {
    view: &'v dyn View,
    topic: Incarnation,
    strand: KeyHash,
    at: MessageId,
    index: Option<Box<dyn Iterator<Item = IndexRow> + 'v>>,
}

type IndexRow = Result<(StrandRunKey, StrandRun), Fault>;

impl<'v> Walk<'v> {
    pub(super) fn new(
        view: &'v dyn View,
        topic: Incarnation,
        strand: KeyHash,
        at: MessageId,
    ) -> Self {
        Walk {
            view,
            topic,
            strand,
            at,
            index: None,
        }
    }

    /// The next run; `hint` is the first message of what is probably the one.
    pub(super) fn next(
        &mut self,
        hint: Option<MessageId>,
    ) -> Result<Option<(MessageId, Run)>, Fault> {
        let hinted = match hint.filter(|first| *first <= self.at) {
            Some(first) => self.run(first)?.map(|run| (first, run)),
            None => None,
        };
        let found = match hinted.filter(|(first, run): &(_, Run)| self.at <= run.last(*first)) {
            Some(found) => Some(found),
            None => self.look_up()?,
        };
        if let Some((first, run)) = &found {
            self.at = MessageId(run.last(*first).0 + 1);
        }
        Ok(found)
    }

    fn look_up(&mut self) -> Result<Option<(MessageId, Run)>, Fault> {
        let (view, topic, strand, at) = (self.view, self.topic, self.strand, self.at);
        if self.index.is_none() {
            self.index = Some(Box::new(read::strand_runs(view, topic, strand, at)));
            if let Some((key, row)) = read::strand_run_floor(view, topic, strand, at)?
                && key.first < at
                && at <= row.last(key.first)
                && let Some(run) = self.run(key.first)?
            {
                return Ok(Some((key.first, run)));
            }
        }
        while let Some(row) = self.index.as_mut().and_then(Iterator::next) {
            let (key, _) = row?;
            if let Some(run) = self.run(key.first)? {
                return Ok(Some((key.first, run)));
            }
        }
        Ok(None)
    }

    /// The run that begins with a message; without its row it is settled.
    fn run(&self, first: MessageId) -> Result<Option<Run>, Fault> {
        let topic = self.topic;
        self.view.row(&RunKey { topic, first })
    }
}

/// How many messages of the run that begins at `first` are before `bound`, which need not be an id.
pub(super) fn messages_before(bound: MessageId, first: MessageId) -> usize {
    let step = first.plus(1).0 - first.0;
    bound.0.saturating_sub(first.0).div_ceil(step) as usize
}

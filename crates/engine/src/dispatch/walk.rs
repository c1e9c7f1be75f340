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

    /// The next run, or `known` if that is the one.
    pub(super) fn next(
        &mut self,
        known: Option<(MessageId, Run)>,
    ) -> Result<Option<(MessageId, Run)>, Fault> {
        let here = known.filter(|(first, run)| *first <= self.at && self.at <= run.last(*first));
        let found = match here {
            Some(found) => Some(found),
            None => self.look_up()?,
        };
        if let Some((first, run)) = &found {
            self.at = MessageId(run.last(*first).0 + 1);
        }
        Ok(found)
    }

    fn look_up(&mut self) -> Result<Option<(MessageId, Run)>, Fault> {
        if self.index.is_none() {
            let (view, topic, strand, at) = (self.view, self.topic, self.strand, self.at);
            self.index = Some(Box::new(read::strand_runs(view, topic, strand, at)));
            if let Some((key, row)) = read::strand_run_floor(view, topic, strand, at)?
                && key.first < at
                && at <= row.last(key.first)
            {
                return self.run(key.first).map(Some);
            }
        }
        match self.index.as_mut().and_then(Iterator::next).transpose()? {
            Some((key, _)) => self.run(key.first).map(Some),
            None => Ok(None),
        }
    }

    fn run(&self, first: MessageId) -> Result<(MessageId, Run), Fault> {
        let topic = self.topic;
        let run = self.view.row(&RunKey { topic, first })?;
        let run = run.ok_or_else(|| Fault::Missing(format!("run {first} of topic {topic}")))?;
        Ok((first, run))
    }
}

/// How many messages of the run that begins at `first` are before `bound`, which need not be an id.
pub(super) fn messages_before(bound: MessageId, first: MessageId) -> usize {
    let step = first.plus(1).0 - first.0;
    bound.0.saturating_sub(first.0).div_ceil(step) as usize
}

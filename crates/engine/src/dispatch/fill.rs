//! Reading ahead: runs become lanes that can go on, or messages that wait for sessions.

use bytes::Bytes;
use model::MessageId;

use super::dispatcher::Dispatcher;
use super::lane::Lane;
use super::reader::Ahead;
use super::step::Step;
use super::{Credit, rewind};
use crate::Fault;
use crate::shard::{Backlog, read};
use crate::table::run::{Run, RunKey};

/// So many lanes that can go on are enough for now.
const READY_LANES: usize = 256;
/// Lanes and messages that are remembered because they failed, are outstanding or were left
/// behind. At this number nothing new is read until some of them are settled.
pub(super) const REMEMBERED_MAX: usize = 100_000;

impl Dispatcher {
    /// Whether more should be read, if there is more.
    pub(super) fn wants_to_read(&self) -> bool {
        !self.sessions.is_empty()
            && !self.reader.is_ahead()
            && self.ready.len() < READY_LANES
            && !self.outbox.settles_enough()
            && self.lanes.len() + self.loose.len() < REMEMBERED_MAX
    }

    /// Reads on as far as this step may. Whether it found any run.
    pub(super) fn fill(&mut self, step: &Step<'_>) -> Result<bool, Fault> {
        if !self.wants_to_read() || !self.reader.may_read() {
            return Ok(false);
        }
        let backlog = self.backlog(step);
        let mut found = false;
        for row in backlog.runs(self.reader.next) {
            if !self.wants_to_read() || !self.reader.may_read() {
                return Ok(found);
            }
            let (key, run) = row?;
            self.reader.pass(key.first);
            found = true;
            match backlog.in_lane(&run) {
                true => self.note_run(step, &backlog, key.first, run)?,
                false => self.read_ahead(step, &backlog, key, run)?,
            }
        }
        self.reader.at_end = true;
        Ok(found)
    }

    /// Lets a run without order wait for sessions.
    fn read_ahead(
        &mut self,
        step: &Step<'_>,
        backlog: &Backlog<'_>,
        key: RunKey,
        run: Run,
    ) -> Result<(), Fault> {
        let holes = backlog.holes(key)?;
        let Some(mut ahead) = Ahead::new(key.first, &run, holes) else {
            return Ok(());
        };
        if !self.filter.is_empty() {
            self.drop_unwanted(step, key, &run, &mut ahead)?;
        }
        if (0..ahead.count).any(|number| !ahead.is_settled(number)) {
            self.reader.push(ahead);
        }
        Ok(())
    }

    /// Settles the messages of a run that the filter does not want.
    fn drop_unwanted(
        &mut self,
        step: &Step<'_>,
        key: RunKey,
        run: &Run,
        ahead: &mut Ahead,
    ) -> Result<(), Fault> {
        let Some(payload) = read::payload(step.view, key, run)? else {
            return Ok(());
        };
        for (number, message) in (0..).zip(payload.messages()) {
            if !ahead.is_settled(number) && !self.wants(&message) {
                ahead.settle(number);
                let id = ahead.first.plus(number);
                self.outbox.settle(run.strand, id, None);
            }
        }
        Ok(())
    }

    /// Notes a run of a lane. Where the lane stands already, it will come to the run by itself.
    fn note_run(
        &mut self,
        step: &Step<'_>,
        backlog: &Backlog<'_>,
        first: MessageId,
        run: Run,
    ) -> Result<(), Fault> {
        let (strand, last) = (run.strand, run.last(first));
        let waiting = Credit {
            messages: run.count,
            bytes: run.bytes,
        };
        if let Some(lane) = self.lanes.get_mut(&strand) {
            if last > lane.newest {
                lane.newest = last;
                lane.waiting.add(waiting);
                self.refresh(strand);
            }
            return Ok(());
        }
        let row = backlog.lane(strand)?;
        if row.position >= last || self.passes_whole(step, first, &run)? {
            return Ok(());
        }
        let epoch = backlog.epoch_of(&run)?;
        let mut lane = Lane::new(epoch, MessageId(row.position.0 + 1), last);
        lane.rewound = rewind::is_covered(&row, lane.next, self.first_of_term(), epoch.0);
        lane.waiting = waiting;
        lane.run = Some(first);
        self.lanes.insert(strand, lane);
        self.refresh(strand);
        Ok(())
    }

    /// Settles a run of a lane that has nothing else to do, if the filter wants nothing of it.
    fn passes_whole(
        &mut self,
        step: &Step<'_>,
        first: MessageId,
        run: &Run,
    ) -> Result<bool, Fault> {
        if self.filter.is_empty() {
            return Ok(false);
        }
        let topic = self.topic;
        let Some(payload) = read::payload(step.view, RunKey { topic, first }, run)? else {
            return Ok(true);
        };
        if payload.messages().any(|message| self.wants(&message)) {
            return Ok(false);
        }
        for number in 0..run.count {
            self.outbox.settle(run.strand, first.plus(number), None);
        }
        Ok(true)
    }

    /// Whether the subscription wants a message.
    pub(super) fn wants(&self, message: &Bytes) -> bool {
        self.filter.wants(message)
    }
}

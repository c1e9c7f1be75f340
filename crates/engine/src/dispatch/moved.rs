//! Strands that come and go while their shard is led: what dispatchers do about it.

use model::{KeyHash, MessageId};

use super::Credit;
use super::dispatcher::Dispatcher;
use super::lane::Lane;
use super::reader::Ahead;
use super::step::Step;
use crate::Fault;
use crate::kv::ViewExt;
use crate::shard::{Backlog, read};
use crate::table::delivery::{Delivery, DeliveryKey};
use crate::table::run::{Run, RunKey};
use crate::table::strand::Strand;

impl Dispatcher {
    /// A strand is sealed: nothing of its lane is sent. What is outstanding stays so, and nothing
    /// that becomes of it counts.
    pub(super) fn freeze(&mut self, strand: KeyHash) {
        if let Some(lane) = self.lanes.get_mut(&strand) {
            lane.frozen = true;
            self.refresh(strand);
        }
    }

    /// A strand is not here any more. Its lane goes as soon as nothing of it is under way.
    pub(super) fn part(&mut self, strand: KeyHash) {
        self.resume(strand);
        let Some(lane) = self.lanes.get_mut(&strand) else {
            return;
        };
        for message in lane.outstanding.iter().copied().collect::<Vec<_>>() {
            self.leases.end(message);
            lane.end_lease(message);
        }
        lane.next = lane.next.max(MessageId(lane.newest.0 + 1));
        self.refresh(strand);
    }

    /// A strand that was sealed, or was at another shard, is open here. What was sent of it before
    /// is sent again, after a rewind, unless its lease is in the log.
    pub(super) fn meet(&mut self, step: &Step<'_>, strand: KeyHash) -> Result<(), Fault> {
        let backlog = self.backlog(step);
        let Some(row) = read::strand(step.view, self.topic, strand)? else {
            return Ok(());
        };
        self.meet_messages(step, &backlog, strand, &row)?;
        self.meet_leases(step, &backlog, strand)
    }

    /// The strands that moves have brought before there was this dispatcher. Its reader may begin
    /// behind them.
    pub(super) fn meet_arrived(
        &mut self,
        step: &Step<'_>,
        backlog: &Backlog<'_>,
    ) -> Result<(), Fault> {
        for strand in read::arrived(step.view, self.topic) {
            let strand = strand?;
            if let Some(row) = read::strand(step.view, self.topic, strand)? {
                self.meet_messages(step, backlog, strand, &row)?;
            }
        }
        Ok(())
    }

    fn meet_messages(
        &mut self,
        step: &Step<'_>,
        backlog: &Backlog<'_>,
        strand: KeyHash,
        row: &Strand,
    ) -> Result<(), Fault> {
        self.inherited = self.inherited.max(row.last);
        self.reader.at_end = false;
        match self.attachment.settings.ordered {
            true => self.meet_lane(backlog, strand, row),
            false => self.meet_runs(step, backlog, strand),
        }
    }

    fn meet_lane(
        &mut self,
        backlog: &Backlog<'_>,
        strand: KeyHash,
        row: &Strand,
    ) -> Result<(), Fault> {
        let position = backlog.lane(strand)?.position;
        let is_done = row.runs == 0 || position >= row.last;
        if is_done && !self.lanes.contains_key(&strand) {
            return Ok(());
        }
        self.resume(strand);
        let (next, opened) = (MessageId(position.0 + 1), (row.epoch, row.sealed));
        let lane = self.lanes.entry(strand);
        let lane = lane.or_insert_with(|| Lane::new(opened, next, row.last));
        for message in lane.outstanding.iter().copied().collect::<Vec<_>>() {
            if self.leases.get(message).is_some_and(|lease| !lease.logged) {
                self.leases.end(message);
                lane.end_lease(message);
            }
        }
        (lane.epoch, lane.frozen) = opened;
        (lane.next, lane.newest) = (next, lane.newest.max(row.last));
        lane.sent = lane.sent.max(row.last);
        lane.rewound = false;
        lane.run = None;
        lane.waiting = Credit {
            messages: u32::try_from(row.runs).unwrap_or(u32::MAX),
            bytes: 1,
        };
        self.refresh(strand);
        Ok(())
    }

    /// Runs that the reader has passed, or never meets.
    fn meet_runs(
        &mut self,
        step: &Step<'_>,
        backlog: &Backlog<'_>,
        strand: KeyHash,
    ) -> Result<(), Fault> {
        let topic = self.topic;
        for row in read::strand_runs(step.view, topic, strand, MessageId::ZERO) {
            let first = row?.0.first;
            if first >= self.reader.next {
                break;
            }
            let key = RunKey { topic, first };
            let holes = backlog.holes(key)?;
            if holes.is_none() && backlog.precedes(first) {
                continue;
            }
            if let Some(run) = step.view.row::<Run>(&key)?
                && let Some(ahead) = Ahead::new(first, &run, holes)
            {
                self.reader.insert(ahead);
            }
        }
        Ok(())
    }

    /// Leases that the log has of the strand's messages, and that are not known here.
    fn meet_leases(
        &mut self,
        step: &Step<'_>,
        backlog: &Backlog<'_>,
        strand: KeyHash,
    ) -> Result<(), Fault> {
        if backlog.deliveries().next().is_none() {
            return Ok(());
        }
        let subscription = self.subscription;
        let key = |message| DeliveryKey {
            subscription,
            message,
        };
        for row in read::strand_runs(step.view, self.topic, strand, MessageId::ZERO) {
            let (run, count) = row?;
            let after = MessageId(count.last(run.first).0 + 1);
            for row in step.view.rows::<Delivery>(&key(run.first), &key(after)) {
                let (key, delivery) = row?;
                let is_of_run = key.message.shard() == run.first.shard();
                if let Some(lease) = delivery.lease.filter(|_| is_of_run)
                    && !self.leases.contains(key.message)
                {
                    self.restore_lease(step, backlog, key.message, lease)?;
                }
            }
        }
        Ok(())
    }
}

//! Failed deliveries: nacked, run out, or never arrived. Each comes again.

use model::{KeyHash, MessageId, Timestamp};

use super::call::Slot;
use super::dispatcher::Dispatcher;
use super::outbox::Failure;
use super::step::Step;
use super::{Credit, ModifyReply, backoff, pin};
use crate::Fault;
use crate::shard::{FailCause, Failed, LeaseOutcome};

impl Dispatcher {
    /// The time of a lease is over.
    pub(super) fn expire(&mut self, step: &mut Step<'_>, message: MessageId) {
        self.leases.set_deadline(message, None);
        let lease = self.leases.get_mut(message);
        let lease = lease.expect("callers have just seen the lease");
        if lease.is_undecided() {
            lease.overdue = true;
            return;
        }
        let cause = match lease.unconfirmed {
            true => FailCause::Returned,
            false => FailCause::Expiry,
        };
        self.fail(step, message, cause, None);
    }

    /// The delivery of a live lease has failed. Where the log keeps leases or counts attempts it
    /// must hear of that first.
    pub(super) fn fail(
        &mut self,
        step: &mut Step<'_>,
        message: MessageId,
        cause: FailCause,
        slot: Option<Slot>,
    ) {
        let lease = self.leases.get_mut(message);
        let lease = lease.expect("callers have just seen the lease");
        let counted =
            self.attachment.settings.dead_letter.is_some() && cause != FailCause::Returned;
        if !lease.logged && !counted {
            self.redeliver(step.now, message, cause, None);
            if let Some(slot) = slot {
                let done = ModifyReply::Modified;
                self.calls.answer_change(slot, done, step.out);
            }
            return;
        }
        lease.failing = true;
        let (strand, in_lane) = (lease.strand, lease.in_lane);
        let failed = Failed {
            strand,
            message,
            generation: lease.generation,
            cause,
        };
        self.leases.set_deadline(message, None);
        self.outbox.fail(slot, failed);
        if in_lane && let Some(lane) = self.lanes.get_mut(&strand) {
            lane.undecided += 1;
            self.refresh(strand);
        }
    }

    /// Failures have been through the log.
    pub(super) fn failed(
        &mut self,
        step: &mut Step<'_>,
        failures: Vec<Failure>,
        outcomes: &[LeaseOutcome],
    ) -> Result<(), Fault> {
        for (failure, outcome) in failures.into_iter().zip(outcomes) {
            let failed = failure.failed;
            let lease = self.leases.of_delivery(failed.message, failed.generation);
            let in_lane =
                self.attachment.settings.ordered && pin::is_keyed(failed.generation.epoch);
            if in_lane && let Some(lane) = self.lanes.get_mut(&failed.strand) {
                lane.undecided -= 1;
            }
            let live = lease.is_some();
            match outcome {
                LeaseOutcome::Done { attempts } if live => {
                    self.after_failure(step, &failed, *attempts)?;
                }
                LeaseOutcome::Stale | LeaseOutcome::Elsewhere if live => {
                    self.after_stale_failure(step, &failed)?;
                }
                // The lane has gone back before the message already.
                _ => {}
            }
            self.refresh(failed.strand);
            if let Some(slot) = failure.slot {
                let reply = match outcome {
                    LeaseOutcome::Elsewhere => ModifyReply::Elsewhere,
                    LeaseOutcome::Stale if self.attachment.settings.exactly_once => {
                        ModifyReply::Stale
                    }
                    _ => ModifyReply::Modified,
                };
                self.calls.answer_change(slot, reply, step.out);
            }
        }
        Ok(())
    }

    /// A failure counts: the message is sent again, unless it has failed often enough.
    fn after_failure(
        &mut self,
        step: &mut Step<'_>,
        failed: &Failed,
        attempts: u32,
    ) -> Result<(), Fault> {
        match self.is_dead(failed.message, attempts) {
            true => self.bury_leased(step, failed, attempts),
            false => {
                let counted = (attempts > 0).then_some(attempts);
                self.redeliver(step.now, failed.message, failed.cause, counted);
                Ok(())
            }
        }
    }

    /// A failure came too late: the message is settled. Or the log knew nothing of the lease, and
    /// the message is still there.
    fn after_stale_failure(&mut self, step: &mut Step<'_>, failed: &Failed) -> Result<(), Fault> {
        let message = failed.message;
        if !self.backlog(step).is_settled(message)? {
            self.redeliver(step.now, message, FailCause::Returned, None);
            return Ok(());
        }
        self.leases.end(message);
        if let Some(lane) = self.lanes.get_mut(&failed.strand) {
            lane.end_lease(message);
        }
        Ok(())
    }

    /// Ends a lease so that its message is sent again. In a lane, everything behind it follows
    /// again; only leases that the log keeps run on.
    pub(super) fn redeliver(
        &mut self,
        now: Timestamp,
        message: MessageId,
        cause: FailCause,
        attempts: Option<u32>,
    ) {
        let Some(lease) = self.leases.end(message) else {
            return;
        };
        if model::sabotage!("failed-message-is-lost") {
            return;
        }
        let resume_at = self.back_off(now, message, cause, attempts);
        if !lease.in_lane {
            for _ in 0..lease.acks {
                self.loose.begin_ack(message);
            }
            self.loose.insert(message, lease.bytes, resume_at);
            return;
        }
        if let Some(lane) = self.lanes.get_mut(&lease.strand) {
            lane.end_lease(message);
        }
        self.go_back(lease.strand, message, lease.bytes, resume_at);
    }

    /// A lane goes back to a message without a lease.
    pub(super) fn go_back(
        &mut self,
        strand: KeyHash,
        message: MessageId,
        bytes: u64,
        resume_at: Option<Timestamp>,
    ) {
        let Some(lane) = self.lanes.get_mut(&strand) else {
            return;
        };
        lane.waiting.add(Credit::of(bytes));
        let after = lane.outstanding.partition_point(|id| *id < message);
        for later in lane
            .outstanding
            .iter()
            .skip(after)
            .copied()
            .collect::<Vec<_>>()
        {
            let logged = self.leases.get(later).is_some_and(|lease| lease.logged);
            if !logged
                && !model::sabotage!("cascade-leaves-later-leases")
                && let Some(ended) = self.leases.end(later)
            {
                lane.end_lease(later);
                lane.waiting.add(Credit::of(ended.bytes));
            }
        }
        lane.go_back(message.plus(u32::from(model::sabotage!("cascade-skips-one"))));
        self.hold_back(strand, resume_at);
        self.refresh(strand);
    }

    /// When a failed message may be sent again; none for at once.
    pub(super) fn back_off(
        &mut self,
        now: Timestamp,
        message: MessageId,
        cause: FailCause,
        attempts: Option<u32>,
    ) -> Option<Timestamp> {
        let policy = self.attachment.settings.retry?;
        if cause == FailCause::Returned || model::sabotage!("backoff-ignored") {
            return None;
        }
        let failures = match attempts {
            Some(attempts) => attempts,
            None => self.count_failure(message),
        };
        let wait = backoff::wait(policy, failures);
        (!wait.is_zero()).then(|| now.plus(wait))
    }

    /// Holds a lane back until a moment; a later one than before wins.
    fn hold_back(&mut self, strand: KeyHash, until: Option<Timestamp>) {
        let lane = self.lanes.get_mut(&strand);
        let lane = lane.expect("callers have just seen the lane");
        if until > lane.resume_at {
            if let Some(before) = lane.resume_at {
                self.resumptions.remove(&(before, strand));
            }
            lane.resume_at = until;
            self.resumptions.extend(until.map(|until| (until, strand)));
        }
    }

    /// Ends a lane's back-off: the message that it was for is settled.
    pub(super) fn resume(&mut self, strand: KeyHash) {
        if let Some(lane) = self.lanes.get_mut(&strand)
            && let Some(until) = lane.resume_at.take()
        {
            self.resumptions.remove(&(until, strand));
        }
    }

    fn count_failure(&mut self, message: MessageId) -> u32 {
        // At the limit only failures that are counted already go on being counted.
        if self.failures.len() >= super::fill::REMEMBERED_MAX
            && !self.failures.contains_key(&message)
        {
            return 1;
        }
        let failures = self.failures.entry(message).or_default();
        *failures += 1;
        *failures
    }
}

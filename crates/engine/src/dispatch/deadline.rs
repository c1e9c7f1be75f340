//! Changed deadlines: receipts, extensions and nacks.

use std::time::Duration;

use model::{AckId, KeyHash};

use super::call::Slot;
use super::dispatcher::Dispatcher;
use super::outbox::Extension;
use super::pin::is_keyed;
use super::step::Step;
use super::{ModifyReply, Output, RequestId};
use crate::Fault;
use crate::shard::{FailCause, LeaseOutcome, read};

impl Dispatcher {
    /// Takes the changes of a call in.
    pub(super) fn modify_deadline(
        &mut self,
        step: &mut Step<'_>,
        request: RequestId,
        mut ids: Vec<(AckId, Duration)>,
    ) -> Result<(), Fault> {
        if ids.is_empty() {
            let replies = Vec::new();
            step.out.push(Output::Modified { request, replies });
            return Ok(());
        }
        self.calls.open_change(request, ids.len());
        let mut ids: Vec<_> = ids.drain(..).enumerate().collect();
        // A nack takes the later messages of its lane along: their own nacks are then no failures.
        ids.sort_by_key(|(_, (id, _))| id.message);
        for (at, (id, duration)) in ids {
            let slot = Slot { request, at };
            if self.is_elsewhere(step, &id)? {
                let reply = ModifyReply::Elsewhere;
                self.calls.answer_change(slot, reply, step.out);
                continue;
            }
            match duration.is_zero() {
                true => self.give_up(step, &id, FailCause::Nack, Some(slot)),
                false => self.extend(step, &id, duration, slot),
            }
        }
        Ok(())
    }

    /// Whether only another shard can know the lease of a delivery. Leases that are not in the log
    /// do not move with their key.
    fn is_elsewhere(&mut self, step: &Step<'_>, id: &AckId) -> Result<bool, Fault> {
        let is_known = self.leases.of_delivery(id.message, id.generation).is_some();
        let may_move = self.attachment.settings.exactly_once && is_keyed(id.generation.epoch);
        Ok(!is_known && may_move && !self.is_open(step, id.key)?)
    }

    /// Whether the shard has a strand, and it is not sealed.
    fn is_open(&self, step: &Step<'_>, strand: KeyHash) -> Result<bool, Fault> {
        let strand = read::strand(step.view, self.topic, strand)?;
        Ok(strand.is_some_and(|strand| !strand.sealed))
    }

    /// A delivery is given up, by its client or because it never reached it.
    pub(super) fn give_up(
        &mut self,
        step: &mut Step<'_>,
        id: &AckId,
        cause: FailCause,
        slot: Option<Slot>,
    ) {
        let reply = match self.leases.of_delivery(id.message, id.generation) {
            Some(lease) if !lease.failing && !model::sabotage!("nack-lost") => {
                if lease.acks > 0 && !lease.logged {
                    // The ack that came first decides.
                    lease.overdue = true;
                    ModifyReply::Modified
                } else {
                    return self.fail(step, id.message, cause, slot);
                }
            }
            _ => self.stale_change(),
        };
        if let Some(slot) = slot {
            self.calls.answer_change(slot, reply, step.out);
        }
    }

    /// A lease runs for `duration` from now.
    fn extend(&mut self, step: &mut Step<'_>, id: &AckId, duration: Duration, slot: Slot) {
        let message = id.message;
        let reply = match self.leases.of_delivery(message, id.generation) {
            Some(lease) if lease.failing => self.stale_change(),
            Some(lease) if lease.logged => {
                lease.changes += 1;
                let (generation, strand) = (lease.generation, lease.strand);
                return self.outbox.extend(Extension {
                    slot,
                    strand,
                    message,
                    generation,
                    duration,
                });
            }
            Some(lease) => {
                lease.confirm();
                // One that is overdue waits for the outcome of its ack.
                if !lease.overdue {
                    let deadline = step.now.plus(duration);
                    self.leases.set_deadline(message, Some(deadline));
                }
                ModifyReply::Modified
            }
            None => self.stale_change(),
        };
        self.calls.answer_change(slot, reply, step.out);
    }

    /// Extensions have been through the log.
    pub(super) fn extended(
        &mut self,
        step: &mut Step<'_>,
        extensions: Vec<Extension>,
        outcomes: &[LeaseOutcome],
    ) -> Result<(), Fault> {
        for (extension, outcome) in extensions.into_iter().zip(outcomes) {
            let message = extension.message;
            let lease = self.leases.of_delivery(message, extension.generation);
            if let Some(lease) = lease {
                lease.changes = lease.changes.saturating_sub(1);
                if matches!(outcome, LeaseOutcome::Done { .. }) && !lease.failing {
                    lease.confirm();
                    lease.overdue = false;
                    let deadline = step.now.plus(extension.duration);
                    self.leases.set_deadline(message, Some(deadline));
                }
                self.expire_if_overdue(step, message);
            }
            let is_keyed = is_keyed(extension.generation.epoch);
            let reply = match outcome {
                LeaseOutcome::Done { .. } => ModifyReply::Modified,
                LeaseOutcome::Elsewhere => ModifyReply::Elsewhere,
                LeaseOutcome::Stale if is_keyed && !self.is_open(step, extension.strand)? => {
                    ModifyReply::Elsewhere
                }
                LeaseOutcome::Stale => ModifyReply::Stale,
            };
            self.calls.answer_change(extension.slot, reply, step.out);
        }
        Ok(())
    }

    /// What a client hears that changes the deadline of a lease that is over.
    fn stale_change(&self) -> ModifyReply {
        match self.attachment.settings.exactly_once {
            true => ModifyReply::Stale,
            false => ModifyReply::Modified,
        }
    }
}

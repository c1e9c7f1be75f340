//! Settings that change while messages are outstanding: deliveries made afterwards follow the new
//! ones.

use std::sync::Arc;

use super::dispatcher::Dispatcher;
use super::outbox::Adoption;
use super::step::Step;
use crate::Fault;
use crate::shard::{Granted, LeaseOutcome};

impl Dispatcher {
    /// Reads the settings again. Sessions hear of them if they matter to clients.
    pub(super) fn reload(&mut self, step: &mut Step<'_>) -> Result<(), Fault> {
        let open = crate::shard::Backlog::open(step.view, self.topic, self.subscription)?;
        // A later Detach may be applied already; its effect follows.
        let Some(backlog) = open else {
            return Ok(());
        };
        let attachment = backlog.attachment();
        if attachment.version == self.attachment.version {
            return Ok(());
        }
        let was_exactly_once = self.attachment.settings.exactly_once;
        self.attachment = Arc::new(attachment.clone());
        if self.attachment.settings.retry.is_none() && !model::sabotage!("back-off-outlives-policy")
        {
            self.end_back_offs();
        }
        if !was_exactly_once && self.attachment.settings.exactly_once {
            self.adopt_leases(step);
        }
        let sessions: Vec<_> = self.sessions.iter().map(|(id, _)| id).collect();
        for session in sessions {
            self.tell_properties(step, session);
        }
        self.refresh_all();
        Ok(())
    }

    /// Without a retry policy nothing waits.
    fn end_back_offs(&mut self) {
        self.failures.clear();
        self.loose.end_back_offs();
        for (_, strand) in std::mem::take(&mut self.resumptions) {
            let lane = self.lanes.get_mut(&strand);
            lane.expect("a lane that is held back is in memory")
                .resume_at = None;
        }
    }

    /// Lets the log know of the leases from before it kept leases: their acks go on counting.
    fn adopt_leases(&mut self, step: &Step<'_>) {
        let unlogged = self.leases.iter_mut();
        let unlogged = unlogged.filter(|(_, lease)| !lease.logged && !lease.failing);
        for (message, lease) in unlogged {
            lease.changes += 1;
            // Whatever ends it now follows the adoption through the log.
            lease.logged = true;
            let deadline = lease.deadline.unwrap_or(step.now);
            self.outbox.adopt(Granted {
                strand: lease.strand,
                message,
                generation: lease.generation,
                duration: deadline.since(step.now),
            });
        }
    }

    /// Leases are in the log now. One that the log refused runs on as before: its message is
    /// settled, or comes again when it is over.
    pub(super) fn adopted(
        &mut self,
        step: &mut Step<'_>,
        adoptions: Vec<Adoption>,
        outcomes: &[LeaseOutcome],
    ) {
        for (adoption, outcome) in adoptions.into_iter().zip(outcomes) {
            let lease = self
                .leases
                .of_delivery(adoption.message, adoption.generation);
            if let Some(lease) = lease {
                lease.changes = lease.changes.saturating_sub(1);
                lease.logged = matches!(outcome, LeaseOutcome::Done { .. });
                self.expire_if_overdue(step, adoption.message);
            }
        }
    }
}

//! Exactly-once: deliveries are in the log before they are sent, and leases outlive their leader.

use std::collections::btree_map::Entry;
use std::time::Duration;

use model::{MessageId, SessionId};

use super::dispatcher::Dispatcher;
use super::lane::Lane;
use super::lease::Lease;
use super::session::Flow;
use super::step::Step;
use super::{Delivered, Output};
use crate::Fault;
use crate::shard::{Backlog, FailCause, Granted, LeaseOutcome, read};
use crate::table::delivery::Lease as LoggedLease;
use crate::table::run::Run;

impl Dispatcher {
    /// Has deliveries logged that a session is about to get.
    pub(super) fn log_grant(
        &mut self,
        session: SessionId,
        deliveries: &[Delivered],
        duration: Duration,
    ) {
        let granted = |delivery: &Delivered| Granted {
            strand: delivery.ack.key,
            message: delivery.ack.message,
            generation: delivery.ack.generation,
            duration,
        };
        let deliveries = deliveries.iter().map(granted).collect();
        self.outbox.grant(session, deliveries);
    }

    /// Deliveries are logged: they go out. Those that the log refused are skipped, and those whose
    /// session has ended meanwhile come again.
    pub(super) fn granted(
        &mut self,
        step: &mut Step<'_>,
        session: SessionId,
        granted: Vec<Granted>,
        outcomes: &[LeaseOutcome],
    ) -> Result<(), Fault> {
        let is_logging = |flow: &Flow| matches!(flow, Flow::Logging { .. });
        let open = self.sessions.get_mut(session);
        let open = open.filter(|session| is_logging(&session.flow));
        let flow = open.map(|session| std::mem::replace(&mut session.flow, Flow::Idle));
        let mut attempts = Vec::with_capacity(granted.len());
        for (delivery, outcome) in granted.iter().zip(outcomes) {
            attempts.push(match outcome {
                LeaseOutcome::Done { attempts } => {
                    self.start_lease(step, delivery, flow.is_some());
                    Some(*attempts)
                }
                LeaseOutcome::Stale => {
                    self.drop_refused(step, delivery)?;
                    None
                }
            });
        }
        if let Some(Flow::Logging { credit, deliveries }) = flow {
            let sent = deliveries.into_iter().zip(&attempts);
            let deliveries = sent.filter_map(|(delivery, attempts)| {
                attempts.map(|attempts| self.counted(delivery, attempts))
            });
            step.out.push(Output::Deliver {
                session,
                deliveries: deliveries.collect(),
                granted: credit,
            });
        }
        Ok(())
    }

    /// A logged lease begins to run, if its session is still there to get the delivery.
    fn start_lease(&mut self, step: &mut Step<'_>, delivery: &Granted, is_open: bool) {
        let lease = self
            .leases
            .of_delivery(delivery.message, delivery.generation);
        if lease.is_none() {
            return;
        }
        if is_open {
            let deadline = step.now.plus(delivery.duration);
            self.leases.set_deadline(delivery.message, Some(deadline));
        } else {
            self.fail(step, delivery.message, FailCause::Returned, None);
        }
    }

    /// The log refused a delivery: its message is settled, or has a lease that is not known here.
    fn drop_refused(&mut self, step: &mut Step<'_>, delivery: &Granted) -> Result<(), Fault> {
        let (message, strand) = (delivery.message, delivery.strand);
        let lease = self.leases.of_delivery(message, delivery.generation);
        let Some(lease) = lease else {
            return Ok(());
        };
        // It was never sent: the grant that it would have used up goes back as a whole.
        lease.session = None;
        let backlog = self.backlog(step);
        let logged = backlog.delivery(message)?.and_then(|row| row.lease);
        if !backlog.is_settled(message)? && logged.is_none() {
            self.redeliver(step.now, message, FailCause::Returned, None);
            return Ok(());
        }
        self.leases.end(message);
        if let Some(lane) = self.lanes.get_mut(&strand) {
            lane.end_lease(message);
        }
        if let Some(logged) = logged {
            self.restore_lease(step, &backlog, message, logged)?;
        }
        self.refresh(strand);
        Ok(())
    }

    fn counted(&self, mut delivery: Delivered, attempts: u32) -> Delivered {
        if self.attachment.settings.dead_letter.is_some() {
            delivery.delivery_attempt = attempts + 1;
        }
        delivery
    }

    /// Takes over the leases that are in the log, each in full from now on.
    pub(super) fn restore_leases(
        &mut self,
        step: &Step<'_>,
        backlog: &Backlog<'_>,
    ) -> Result<(), Fault> {
        if !self.attachment.settings.exactly_once {
            return Ok(());
        }
        for row in backlog.deliveries() {
            let (key, delivery) = row?;
            if let Some(lease) = delivery.lease {
                self.restore_lease(step, backlog, key.message, lease)?;
            }
        }
        Ok(())
    }

    fn restore_lease(
        &mut self,
        step: &Step<'_>,
        backlog: &Backlog<'_>,
        message: MessageId,
        logged: LoggedLease,
    ) -> Result<(), Fault> {
        let Some((key, run)) = read::run_of(step.view, self.topic, message)? else {
            return Ok(());
        };
        let in_lane = backlog.in_lane(&run);
        let lease = Lease {
            generation: logged.generation,
            strand: run.strand,
            in_lane,
            session: None,
            bytes: run.bytes / u64::from(run.count),
            deadline: Some(step.now.plus(logged.duration)),
            extended: logged.extended,
            logged: true,
            unconfirmed: false,
            undecided: 0,
            failing: false,
            overdue: false,
        };
        self.leases.insert(message, lease);
        if in_lane {
            self.restore_in_lane(backlog, message, (key.first, &run))?;
        }
        Ok(())
    }

    /// Nobody knows who has the message: its lane waits for it before it goes on.
    fn restore_in_lane(
        &mut self,
        backlog: &Backlog<'_>,
        message: MessageId,
        (first, run): (MessageId, &Run),
    ) -> Result<(), Fault> {
        let lane = match self.lanes.entry(run.strand) {
            Entry::Occupied(lane) => lane.into_mut(),
            Entry::Vacant(vacant) => {
                let position = backlog.lane(run.strand)?.position;
                vacant.insert(Lane::new(MessageId(position.0 + 1), run.last(first)))
            }
        };
        lane.newest = lane.newest.max(run.last(first));
        lane.sent = lane.sent.max(message);
        if let Err(at) = lane.outstanding.binary_search(&message) {
            lane.outstanding.insert(at, message);
        }
        lane.go_back(message);
        self.refresh(run.strand);
        Ok(())
    }
}

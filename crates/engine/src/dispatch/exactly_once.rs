//! Exactly-once: deliveries are in the log before they are sent, and leases outlive their leader.

use std::collections::BTreeSet;
use std::collections::btree_map::Entry;
use std::time::Duration;

use model::{KeyHash, MessageId, SessionId, Timestamp};

use super::dispatcher::Dispatcher;
use super::lane::Lane;
use super::lease::Lease;
use super::outbox::Granting;
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
        stream: Option<SessionId>,
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
        self.outbox.grant(Granting {
            session,
            stream,
            deliveries,
        });
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
        let mut gaps = BTreeSet::new();
        for (delivery, outcome) in granted.iter().zip(outcomes) {
            let goes_out = flow.is_some() && !gaps.contains(&delivery.strand);
            attempts.push(match outcome {
                LeaseOutcome::Done { attempts } => {
                    self.start_lease(step, delivery, goes_out);
                    goes_out.then_some(*attempts)
                }
                LeaseOutcome::Stale | LeaseOutcome::Elsewhere => {
                    if !self.drop_refused(step, delivery)? {
                        gaps.insert(delivery.strand);
                    }
                    None
                }
            });
        }
        self.release_orphans(session);
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

    /// A session has ended whose deliveries are being logged. They won't be sent, so nothing behind
    /// them may be, before they have been given up.
    pub(super) fn orphan(&mut self, session: SessionId, deliveries: &[Delivered]) {
        let strands: BTreeSet<KeyHash> = deliveries
            .iter()
            .map(|delivery| delivery.ack.key)
            .filter(|strand| self.lanes.contains_key(strand))
            .collect();
        for strand in &strands {
            if let Some(lane) = self.lanes.get_mut(strand) {
                lane.undecided += 1;
            }
            self.refresh(*strand);
        }
        self.orphans.insert(session, strands);
    }

    fn release_orphans(&mut self, session: SessionId) {
        for strand in self.orphans.remove(&session).into_iter().flatten() {
            if let Some(lane) = self.lanes.get_mut(&strand) {
                lane.undecided -= 1;
            }
            self.refresh(strand);
        }
    }

    /// A logged lease begins to run. A delivery that does not go out after all, since its session
    /// has ended or one before it in its lane was refused, comes again.
    fn start_lease(&mut self, step: &mut Step<'_>, delivery: &Granted, goes_out: bool) {
        let message = delivery.message;
        let Some(lease) = self.leases.of_delivery(message, delivery.generation) else {
            return;
        };
        if goes_out {
            let deadline = step.now.plus(delivery.duration);
            self.leases.set_deadline(message, Some(deadline));
        } else {
            // The grant that it would have used up goes back as a whole.
            lease.session = None;
            self.fail(step, message, FailCause::Returned, None);
        }
    }

    /// The log refused a delivery: its message is settled, or has a lease that is not known here.
    /// Whether it is settled, so that those behind it can go.
    fn drop_refused(&mut self, step: &mut Step<'_>, delivery: &Granted) -> Result<bool, Fault> {
        let (message, strand) = (delivery.message, delivery.strand);
        let backlog = self.backlog(step);
        let is_settled = backlog.is_settled(message)?;
        let Some(lease) = self.leases.of_delivery(message, delivery.generation) else {
            return Ok(is_settled);
        };
        lease.session = None;
        let logged = backlog.delivery(message)?.and_then(|row| row.lease);
        if !is_settled && logged.is_none() {
            self.redeliver(step.now, message, FailCause::Returned, None);
            return Ok(false);
        }
        self.leases.end(message);
        if let Some(lane) = self.lanes.get_mut(&strand) {
            lane.end_lease(message);
        }
        if let Some(logged) = logged {
            self.restore_lease(step, &backlog, message, logged)?;
        }
        self.refresh(strand);
        Ok(is_settled)
    }

    fn counted(&self, mut delivery: Delivered, attempts: u32) -> Delivered {
        if self.attachment.settings.dead_letter.is_some() {
            delivery.delivery_attempt = attempts + 1;
        }
        delivery
    }

    /// Takes over the leases that are in the log, each in full. Also if the subscription is not
    /// exactly-once any more: it was when they were given.
    pub(super) fn restore_leases(
        &mut self,
        step: &Step<'_>,
        backlog: &Backlog<'_>,
    ) -> Result<(), Fault> {
        for row in backlog.deliveries() {
            let (key, delivery) = row?;
            if let Some(lease) = delivery.lease {
                self.restore_lease(step, backlog, key.message, lease)?;
            }
        }
        Ok(())
    }

    pub(super) fn restore_lease(
        &mut self,
        step: &Step<'_>,
        backlog: &Backlog<'_>,
        message: MessageId,
        logged: LoggedLease,
    ) -> Result<(), Fault> {
        let Some((key, run)) = read::run_of(step.view, self.topic, message)? else {
            return Ok(());
        };
        // A mark leaves the lease of its message in the log.
        if backlog.is_settled(message)? {
            return Ok(());
        }
        let in_lane = backlog.in_lane(&run);
        // One that its key has brought from another shard has come while this leader led.
        let brought = logged.generation.epoch < backlog.epoch_of(&run)?.0;
        let begins = match brought {
            true => step.now,
            false => self.restart(step, &logged),
        };
        let deadline = begins.plus(logged.duration);
        // Its client is gone, and never said that it had the message.
        let stream = logged.stream.filter(|_| !logged.extended);
        let release = stream.and_then(|stream| step.ended.release(stream));
        let lease = Lease {
            generation: logged.generation,
            strand: run.strand,
            in_lane,
            session: None,
            stream: logged.stream,
            bytes: run.bytes / u64::from(run.count),
            deadline: Some(release.map_or(deadline, |release| deadline.min(release))),
            extended: logged.extended,
            logged: true,
            brought,
            unconfirmed: release.is_some(),
            if_back: None,
            acks: 0,
            changes: 0,
            failing: false,
            overdue: false,
        };
        self.leases.insert(message, lease);
        if in_lane {
            self.restore_in_lane(backlog, message, (key.first, &run))?;
        }
        Ok(())
    }

    /// From when on a logged lease runs in full: none of an earlier leader began after this one.
    fn restart(&self, step: &Step<'_>, logged: &LoggedLease) -> Timestamp {
        match logged.generation.term == self.leadership.term {
            true => step.now,
            false => self.leadership.began,
        }
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
                let next = MessageId(backlog.lane(run.strand)?.position.0 + 1);
                let epoch = backlog.epoch_of(run)?;
                vacant.insert(Lane::new(epoch, next, run.last(first)))
            }
        };
        lane.newest = lane.newest.max(run.last(first));
        lane.sent = lane.sent.max(message);
        lane.begin_lease(message);
        lane.go_back(message);
        self.refresh(run.strand);
        Ok(())
    }
}

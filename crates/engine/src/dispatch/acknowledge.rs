//! Acks: into the log, and back with what became of them.

use std::time::Duration;

use model::{AckId, KeyHash, MessageId};

use super::call::Slot;
use super::dispatcher::Dispatcher;
use super::outbox::Ack;
use super::step::Step;
use super::{AckReply, Output, RequestId, pin};
use crate::Fault;
use crate::shard::{AckOutcome, FailCause};
use crate::table::lane::Lane as LaneRow;

/// When a lane goes back a session has credit for it, so the message is sent within this time, or
/// others have taken the credit. No client is told for longer to try again: some send no other ack
/// meanwhile, and the credit may have to come from those.
const RESENT_WITHIN: Duration = Duration::from_secs(1);

impl Dispatcher {
    /// Takes the acks of a call in.
    pub(super) fn acknowledge(&mut self, step: &mut Step<'_>, request: RequestId, ids: Vec<AckId>) {
        if ids.is_empty() {
            let replies = Vec::new();
            step.out.push(Output::Acknowledged { request, replies });
            return;
        }
        self.calls.open_ack(request, ids.len());
        for (at, id) in ids.into_iter().enumerate() {
            // What is being acknowledged is not sent again meanwhile. A lane needs no such care:
            // before it sends anything again, a rewind follows the ack through the log.
            let lease = self.leases.of_delivery(id.message, id.generation);
            let has_lease = lease.map(|lease| lease.acks += 1).is_some();
            let loose = !has_lease && !self.in_lane(&id);
            if loose {
                self.loose.begin_ack(id.message);
            }
            let slot = Slot { request, at };
            self.outbox.acknowledge(Ack { slot, id, loose });
        }
    }

    /// Acks have been through the log.
    pub(super) fn acknowledged(
        &mut self,
        step: &mut Step<'_>,
        acks: Vec<Ack>,
        outcomes: &[AckOutcome],
    ) -> Result<(), Fault> {
        for (ack, outcome) in acks.iter().zip(outcomes) {
            let id = ack.id;
            let reply = match outcome {
                AckOutcome::Acknowledged if self.comes_again(step, &id)? => AckReply::Superseded,
                AckOutcome::Acknowledged => {
                    self.settle(step, &id)?;
                    AckReply::Acknowledged
                }
                AckOutcome::Unordered => AckReply::Unordered,
                AckOutcome::Stale => self.stale_ack(step, &id)?,
                AckOutcome::Elsewhere => AckReply::Elsewhere,
            };
            self.end_ack(step, ack);
            self.calls.answer_ack(ack.slot, reply, step.out);
        }
        Ok(())
    }

    /// A message is settled: its lease ends, and its lane goes on behind it.
    pub(super) fn settle(&mut self, step: &Step<'_>, id: &AckId) -> Result<(), Fault> {
        let message = id.message;
        self.leases.end(message);
        self.failures.remove(&message);
        self.letters.excused.remove(&message);
        if !self.in_lane(id) {
            self.loose.remove(message);
            self.reader.settle(message);
            return Ok(());
        }
        let Some(lane) = self.lanes.get_mut(&id.key) else {
            return Ok(());
        };
        if lane
            .outstanding
            .front()
            .is_some_and(|first| *first < message)
        {
            lane.marks += 1;
        }
        lane.end_lease(message);
        // What a rewind on its way through the log erases is seen when it is through.
        let is_ahead = message >= lane.next && lane.rewinding.is_none();
        if is_ahead || lane.marks >= model::limits::LANE_MARKS_MAX {
            self.pass_settled(step, id.key)?;
        }
        if !model::sabotage!("ack-wakes-nobody") {
            self.refresh(id.key);
        }
        Ok(())
    }

    /// A lane goes on behind what was acknowledged of it from its next message on: nothing of that
    /// has been sent again, so these acks count.
    pub(super) fn pass_settled(&mut self, step: &Step<'_>, strand: KeyHash) -> Result<(), Fault> {
        let backlog = self.backlog(step);
        let Some(lane) = self.lanes.get_mut(&strand) else {
            return Ok(());
        };
        let before = lane.next;
        let next = backlog.next_in_lane(strand, MessageId(before.0 - 1))?;
        lane.settle_up_to(MessageId(next.map_or(lane.newest.0, |next| next.0 - 1)));
        lane.marks = backlog.lane(strand)?.marks.len();
        // A back-off was for the message that is settled now.
        if lane.next > before {
            self.resume(strand);
        }
        Ok(())
    }

    /// Whether a message was acknowledged just before a rewind that begins with it: it comes again
    /// by itself, so its ack must not be answered with OK.
    fn comes_again(&self, step: &Step<'_>, id: &AckId) -> Result<bool, Fault> {
        let lane = self.lanes.get(&id.key).filter(|_| self.in_lane(id));
        if lane.is_none_or(|lane| lane.rewinding != Some(id.message)) {
            return Ok(false);
        }
        let position = self.backlog(step).lane(id.key)?.position;
        Ok(position < id.message)
    }

    /// An ack does not count. What that means depends on what has become of the message.
    fn stale_ack(&mut self, step: &mut Step<'_>, id: &AckId) -> Result<AckReply, Fault> {
        if self.attachment.settings.exactly_once {
            return Ok(AckReply::Stale);
        }
        // The log would not have it though its delivery is the latest: the client gets the message
        // again.
        let live = self.leases.of_delivery(id.message, id.generation);
        if live.is_some_and(|lease| !lease.failing) {
            self.redeliver(step.now, id.message, FailCause::Returned, None);
            return Ok(AckReply::Void);
        }
        let row = self.backlog(step).lane(id.key)?;
        let lane = self.lanes.get(&id.key);
        let sent_again = lane.is_some_and(|lane| {
            id.message <= lane.sent && lane.rewinding.is_none() && id.message < lane.next
        });
        if sent_again || row.covers(id.message) || comes_behind_another(&row, id.message) {
            return Ok(AckReply::Acknowledged);
        }
        let resent = lane.and_then(|lane| lane.went_back);
        match resent.is_some_and(|at| step.now < at.plus(RESENT_WITHIN)) {
            true => Ok(AckReply::Superseded),
            false => Ok(AckReply::Void),
        }
    }

    /// An ack is decided. Whatever waited for that goes on.
    fn end_ack(&mut self, step: &mut Step<'_>, ack: &Ack) {
        let message = ack.id.message;
        match self.leases.of_delivery(message, ack.id.generation) {
            Some(lease) if !ack.loose => {
                // One that was taken over from the log meanwhile has not counted it.
                lease.acks = lease.acks.saturating_sub(1);
                self.expire_if_overdue(step, message);
            }
            // Also if its lease has ended meanwhile and left the ack to be waited for.
            _ => self.loose.end_ack(message),
        }
    }

    /// Whether the message of an ack id is in a lane.
    pub(super) fn in_lane(&self, id: &AckId) -> bool {
        self.attachment.settings.ordered && pin::is_keyed(id.generation.epoch)
    }

    /// The time of a lease was over before something was decided that now is.
    pub(super) fn expire_if_overdue(&mut self, step: &mut Step<'_>, message: MessageId) {
        let lease = self.leases.get(message);
        if lease.is_some_and(|lease| lease.overdue && !lease.is_undecided()) {
            self.expire(step, message);
        }
    }
}

/// Whether a lane has gone back to an earlier message than this one, which then follows it again,
/// acknowledged or not.
fn comes_behind_another(row: &LaneRow, message: MessageId) -> bool {
    let mut rewound = row.rewound.iter().rev();
    let last = rewound.find(|rewound| rewound.from <= message);
    last.is_some_and(|last| last.from < message || model::sabotage!("void-ack-is-ok"))
}

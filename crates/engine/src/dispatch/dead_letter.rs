//! Dead letters: messages that have failed too often leave for another topic, at least once, and
//! are settled here only when they are stored there.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use bytes::Bytes;
use model::{KeyHash, MessageId, Timestamp};

use super::dispatcher::Dispatcher;
use super::outbox::Settlement;
use super::step::Step;
use super::{ForwardId, Forwarded, Output, backoff};
use crate::Fault;
use crate::message_wire;
use crate::shard::{FailCause, Failed, read};
use crate::subscription::{DeadLetterPolicy, RetryPolicy};
use crate::table::run::Run;

/// How long a dead letter waits whose fate is unknown, before it is sent off again.
const RETRY: RetryPolicy = RetryPolicy {
    minimum: Duration::from_millis(500),
    maximum: Duration::from_secs(30),
};

/// The dead letters of one subscription that are on their way.
#[derive(Debug, Default)]
pub(super) struct DeadLetters {
    under_way: BTreeMap<ForwardId, Letter>,
    retries: BTreeSet<(Timestamp, ForwardId)>,
    /// Messages whose topic for dead letters is gone: each is delivered once more.
    pub(super) excused: BTreeSet<MessageId>,
}

#[derive(Clone, Copy, Debug)]
struct Letter {
    message: MessageId,
    strand: KeyHash,
    in_lane: bool,
    bytes: u64,
    attempts: u32,
    /// How often its fate was unknown.
    tries: u32,
    /// It is stored; only its settlement is not in the log yet.
    stored: bool,
}

impl DeadLetters {
    pub(super) fn is_empty(&self) -> bool {
        self.under_way.is_empty()
    }

    pub(super) fn next_time(&self) -> Option<Timestamp> {
        self.retries.first().map(|(at, _)| *at)
    }
}

impl Dispatcher {
    /// Whether a message has failed often enough.
    pub(super) fn is_dead(&self, message: MessageId, attempts: u32) -> bool {
        let policy = &self.attachment.settings.dead_letter;
        let reached = policy.as_ref().is_some_and(|policy| {
            attempts + u32::from(model::sabotage!("dead-letter-one-early")) >= policy.attempts_max
        });
        reached && !self.letters.excused.contains(&message)
    }

    /// Sends a message off to the dead letters. Its lane, or the message itself, waits for that.
    pub(super) fn bury(
        &mut self,
        step: &mut Step<'_>,
        message: MessageId,
        run: &Run,
        in_lane: bool,
        encoded: Bytes,
        attempts: u32,
    ) {
        let forward = step.forwards.begin(self.subscription);
        let letter = Letter {
            message,
            strand: run.strand,
            in_lane,
            bytes: encoded.len() as u64,
            attempts,
            tries: 0,
            stored: false,
        };
        self.letters.under_way.insert(forward, letter);
        if model::sabotage!("dead-letter-settled-unstored") {
            self.outbox.settle(run.strand, message, None);
        }
        self.send_off(step, forward, run, &encoded, attempts);
    }

    /// The same for a message whose lease has just failed: the leases behind it in its lane live
    /// on, since nothing of the lane comes again because of it.
    pub(super) fn bury_leased(
        &mut self,
        step: &mut Step<'_>,
        failed: &Failed,
        attempts: u32,
    ) -> Result<(), Fault> {
        let message = failed.message;
        let lease = self.leases.end(message);
        let lease = lease.expect("callers have just seen the lease");
        let read = self.read_message(step, message)?;
        if lease.in_lane
            && let Some(lane) = self.lanes.get_mut(&lease.strand)
        {
            lane.end_lease(message);
            lane.undecided += u32::from(read.is_some());
        }
        // Without its run the message is settled.
        let Some((run, encoded)) = read else {
            return Ok(());
        };
        if !lease.in_lane {
            self.loose.wait_for_forward(message, lease.bytes);
        }
        self.bury(step, message, &run, lease.in_lane, encoded, attempts);
        Ok(())
    }

    /// The fate of a dead letter is known, or not.
    pub(super) fn forwarded(
        &mut self,
        step: &mut Step<'_>,
        forward: ForwardId,
        result: Forwarded,
    ) -> Result<(), Fault> {
        let Some(letter) = self.letters.under_way.get_mut(&forward) else {
            return Ok(());
        };
        match result {
            _ if letter.stored => {}
            Forwarded::Stored => {
                letter.stored = true;
                let (strand, message) = (letter.strand, letter.message);
                self.outbox.settle(strand, message, Some(forward));
            }
            Forwarded::Unknown if model::sabotage!("dead-letter-forgotten") => {}
            Forwarded::Unknown => {
                letter.tries += 1;
                let retry_at = step.now.plus(backoff::wait(RETRY, letter.tries));
                self.letters.retries.insert((retry_at, forward));
            }
            Forwarded::NoTopic => self.deliver_on(step, forward)?,
        }
        Ok(())
    }

    /// Messages that the leader itself settled are through the log.
    pub(super) fn settled(
        &mut self,
        step: &mut Step<'_>,
        settlements: &[Settlement],
    ) -> Result<(), Fault> {
        for forward in settlements.iter().filter_map(|settlement| settlement.dead) {
            let letter = self.letters.under_way.remove(&forward);
            let letter = letter.expect("a letter stays until its settlement is logged");
            step.forwards.end(forward);
            self.leave(step, &letter)?;
        }
        Ok(())
    }

    /// A dead letter is settled.
    fn leave(&mut self, step: &Step<'_>, letter: &Letter) -> Result<(), Fault> {
        match letter.in_lane {
            true => self.leave_lane(step, letter),
            false => {
                self.loose.remove(letter.message);
                // One that an earlier leader delivered may have been read ahead meanwhile.
                self.reader.settle(letter.message);
                Ok(())
            }
        }
    }

    /// The lane of a dead letter goes on behind it.
    fn leave_lane(&mut self, step: &Step<'_>, letter: &Letter) -> Result<(), Fault> {
        let row = self.backlog(step).lane(letter.strand)?;
        let Some(lane) = self.lanes.get_mut(&letter.strand) else {
            return Ok(());
        };
        lane.undecided -= 1;
        lane.settle_up_to(row.position);
        if lane.next == letter.message {
            lane.advance(letter.message, letter.bytes);
        }
        self.refresh(letter.strand);
        Ok(())
    }

    /// Sends off again what is due.
    pub(super) fn retry_letters(&mut self, step: &mut Step<'_>) -> Result<(), Fault> {
        while let Some((at, forward)) = self.letters.retries.first().copied()
            && at <= step.now
        {
            self.letters.retries.remove(&(at, forward));
            let letter = self.letters.under_way.get(&forward).copied();
            let Some(letter) = letter.filter(|letter| !letter.stored) else {
                continue;
            };
            match self.read_message(step, letter.message)? {
                Some((run, encoded)) if self.attachment.settings.dead_letter.is_some() => {
                    self.send_off(step, forward, &run, &encoded, letter.attempts);
                }
                _ => self.deliver_on(step, forward)?,
            }
        }
        Ok(())
    }

    /// A message stays here after all, and is delivered on.
    fn deliver_on(&mut self, step: &mut Step<'_>, forward: ForwardId) -> Result<(), Fault> {
        let letter = self.letters.under_way.remove(&forward);
        let letter = letter.expect("callers have just seen the letter");
        step.forwards.end(forward);
        if self.backlog(step).is_settled(letter.message)? {
            return self.leave(step, &letter);
        }
        self.letters.excused.insert(letter.message);
        let cause = FailCause::Nack;
        let resume_at = self.back_off(step.now, letter.message, cause, Some(letter.attempts));
        if !letter.in_lane {
            self.loose.insert(letter.message, letter.bytes, resume_at);
            return Ok(());
        }
        if let Some(lane) = self.lanes.get_mut(&letter.strand) {
            lane.undecided -= 1;
        }
        self.go_back(letter.strand, letter.message, letter.bytes, resume_at);
        Ok(())
    }

    fn send_off(
        &mut self,
        step: &mut Step<'_>,
        forward: ForwardId,
        run: &Run,
        encoded: &Bytes,
        attempts: u32,
    ) {
        let policy: &Option<DeadLetterPolicy> = &self.attachment.settings.dead_letter;
        let policy = policy.as_ref().expect("only a policy makes dead letters");
        let message = message_wire::dead_letter(encoded, &policy.source, run.published, attempts);
        step.out.push(Output::Forward {
            forward,
            topic: policy.topic.clone(),
            message,
            ordering_key: message_wire::ordering_key(encoded).to_owned(),
        });
    }

    fn read_message(
        &self,
        step: &Step<'_>,
        message: MessageId,
    ) -> Result<Option<(Run, Bytes)>, Fault> {
        let Some((key, run)) = read::run_of(step.view, self.topic, message)? else {
            return Ok(None);
        };
        let number = (message.counter() - key.first.counter()) as usize;
        let payload = read::payload(step.view, key, &run)?;
        Ok(payload.map(|payload| (run, payload.message(number))))
    }
}

//! What a leader does about copies of strands that other shards send it.

use model::{MessageId, RegistryNumber, ShardNumber, sabotage};

use super::arrivals::{Arriving, ArrivingWhat};
use super::leader::Leader;
use super::step::Step;
use super::transfer_message::with_payloads;
use super::{Output, TransferMessage};
use crate::Fault;
use crate::kv::ViewExt;
use crate::registry::{MoveId, Pin, Reply as PinReply};
use crate::shard::{Activate, Opening, Rejected, Reply, Stage, read};
use crate::table::attachment::{Attachment, AttachmentKey};
use crate::table::staged::{Staged, StagedKey};
use crate::table::strand::StrandKey;

impl Leader {
    /// The leader of another shard says something about a key that moves.
    pub(super) fn told(
        &mut self,
        step: &mut Step<'_>,
        message: TransferMessage,
    ) -> Result<(), Fault> {
        match message {
            TransferMessage::Copy { part, payloads } => {
                if let Some(part) = with_payloads(part, payloads) {
                    self.copy_comes(step, part)?;
                }
            }
            TransferMessage::Staged {
                copy,
                id,
                term,
                items,
                whole,
            } => {
                if self.transfers.staged((&copy, id, term), items, whole) {
                    self.seals.ask_now(&copy.strand_key(), step.now);
                }
            }
            TransferMessage::Activate { copy, id, opening } => {
                self.activate(step, copy, id, opening)?;
            }
            TransferMessage::Drop { key, epoch } => {
                let strand = read::strand(step.view, key.topic, key.strand)?;
                if strand.is_some_and(|strand| strand.sealed && strand.epoch == epoch) {
                    self.transfers.opened(&key, step.out);
                    self.take_up(step, &key)?;
                    self.seals.drop(key, epoch);
                }
            }
            TransferMessage::OldPins { pins } => self.look_for_strands(step, pins)?,
        }
        Ok(())
    }

    /// A part of a copy has come: it is logged if it is the next one, and answered anyway.
    fn copy_comes(&mut self, step: &mut Step<'_>, part: Stage) -> Result<(), Fault> {
        let staged = step.view.row::<Staged>(&part.copy)?;
        let is_known = staged.as_ref().is_some_and(|staged| {
            let is_same = staged.id == part.id && staged.term == part.term;
            staged.whole.is_some() || is_same && staged.items > part.from
        });
        if is_known {
            self.tell_staged(step, part.id.shard, &part.copy)
        } else {
            if self.arrivals.may_log(&part.copy) {
                self.arrivals.stage(part);
            }
            Ok(())
        }
    }

    fn tell_staged(
        &self,
        step: &mut Step<'_>,
        to: ShardNumber,
        copy: &StagedKey,
    ) -> Result<(), Fault> {
        let staged = step.view.row::<Staged>(copy)?;
        if let Some(staged) = staged {
            let message = TransferMessage::Staged {
                copy: *copy,
                id: staged.id,
                term: staged.term,
                items: staged.items,
                whole: staged.whole.is_some(),
            };
            step.out.push(Output::Tell { to, message });
        }
        Ok(())
    }

    /// The pin names a copy: it is opened, as soon as it is whole and the catalogue is as new as
    /// the source's was.
    pub(super) fn activate(
        &mut self,
        step: &mut Step<'_>,
        copy: StagedKey,
        id: MoveId,
        opening: Opening,
    ) -> Result<(), Fault> {
        if let Some(strand) = read::strand(step.view, copy.topic, copy.strand)? {
            // What is sealed here since an earlier time is dropped first, as all that is sealed.
            if strand.epoch >= opening.epoch {
                self.tell_drop(step, &copy, id.shard);
            }
            return Ok(());
        }
        let staged = step.view.row::<Staged>(&copy)?;
        let Some(staged) = staged.filter(|staged| staged.id == id) else {
            return Ok(());
        };
        if staged.whole.is_none() || !self.arrivals.may_log(&copy) {
            return Ok(());
        }
        if !self.knows_subscriptions(step, &copy, &staged)? && !self.arrivals.is_compared(&copy) {
            self.arrivals.look_soon(copy, step.now);
            step.out.push(Output::CompareCatalogue { copy });
            return Ok(());
        }
        self.arrivals.activate(id, Activate { copy, opening });
        Ok(())
    }

    /// Whether every subscription takes part here that the source knew. One that does not is gone,
    /// or has not come here yet.
    fn knows_subscriptions(
        &self,
        step: &Step<'_>,
        copy: &StagedKey,
        staged: &Staged,
    ) -> Result<bool, Fault> {
        let known = staged.whole.iter().flat_map(|head| &head.subscriptions);
        for subscription in known {
            let key = AttachmentKey {
                topic: copy.topic,
                subscription: *subscription,
            };
            if step.view.row::<Attachment>(&key)?.is_none()
                && !sabotage!("copy-opens-under-an-old-catalogue")
            {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn tell_drop(&self, step: &mut Step<'_>, copy: &StagedKey, to: ShardNumber) {
        let (key, epoch) = (copy.strand_key(), copy.epoch);
        let message = TransferMessage::Drop { key, epoch };
        step.out.push(Output::Tell { to, message });
    }

    /// A command about a copy is through the log.
    pub(super) fn arrival_logged(
        &mut self,
        step: &mut Step<'_>,
        Arriving { copy, what }: Arriving,
        reply: &Reply,
    ) -> Result<(), Fault> {
        let staged = step.view.row::<Staged>(&copy)?;
        self.arrivals.logged(copy, staged.is_some(), step.now);
        match what {
            ArrivingWhat::Stage => {
                if let Some(staged) = staged {
                    self.tell_staged(step, staged.id.shard, &copy)?;
                }
            }
            ArrivingWhat::Unstage => {}
            ArrivingWhat::Activate { id, opening } => {
                let key = copy.strand_key();
                if matches!(reply, Reply::Rejected(Rejected::BelowFloor { .. })) {
                    self.claims.ask_again(key);
                } else {
                    // The source need not ask before it hears that the key is open.
                    self.activate(step, copy, id, opening)?;
                    self.take_up(step, &key)?;
                }
            }
        }
        Ok(())
    }

    /// The publishes that waited for a key go on.
    fn take_up(&mut self, step: &mut Step<'_>, key: &StrandKey) -> Result<(), Fault> {
        for request in self.claims.take(key) {
            self.publish(step, request)?;
        }
        Ok(())
    }

    /// A claim was answered with the move that brought the key: the shard opens that copy, and
    /// never an empty strand. Whether it has the copy.
    pub(super) fn claimed_copy(
        &mut self,
        step: &mut Step<'_>,
        key: &StrandKey,
        id: MoveId,
        opening: Opening,
    ) -> Result<bool, Fault> {
        for row in read::copies(step.view, key) {
            let (copy, staged) = row?;
            if staged.id == id {
                self.activate(step, copy, id, opening)?;
                self.arrivals.look_soon(copy, step.now);
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Asks for the pins of copies whose turn it is.
    pub(super) fn ask_for_arrivals(&mut self, step: &mut Step<'_>) {
        while let Some((registry, copies)) = self.arrivals.take_due(step.now) {
            let shard = self.shard;
            self.questions.look(registry, shard, copies, step.out);
        }
    }

    /// A registry group has said how the pins of copies are, or has not.
    pub(super) fn arrivals_looked_at(
        &mut self,
        step: &mut Step<'_>,
        registry: RegistryNumber,
        copies: &[StagedKey],
        reply: Option<&PinReply>,
    ) -> Result<(), Fault> {
        for (place, copy) in copies.iter().enumerate() {
            let Some(staged) = step.view.row::<Staged>(copy)? else {
                self.arrivals.logged(*copy, false, step.now);
                continue;
            };
            self.arrivals.look_later(*copy, step.now);
            let Some(reply) = reply else { continue };
            let pin = reply.pins[place];
            if is_outlived(copy, staged.id, pin.as_ref(), reply) {
                if self.arrivals.may_log(copy) {
                    self.arrivals.unstage(*copy);
                }
            } else if let Some(pin) = pin
                && pin.shard == self.shard
                && pin.moved == Some(staged.id)
                && pin.epoch > copy.epoch
            {
                let opening = opening(registry, &pin, reply.id_floor);
                self.activate(step, *copy, staged.id, opening)?;
            }
        }
        Ok(())
    }
}

/// Whether no pin can name a copy any more: it has passed the epoch of the copy's source.
fn is_outlived(copy: &StagedKey, id: MoveId, pin: Option<&Pin>, reply: &PinReply) -> bool {
    match pin {
        None => reply.as_of >= copy.epoch,
        Some(pin) => pin.epoch > copy.epoch && pin.moved != Some(id),
    }
}

/// A pin as a command takes it.
pub(super) fn opening(registry: RegistryNumber, pin: &Pin, id_floor: MessageId) -> Opening {
    Opening {
        registry,
        epoch: pin.epoch,
        since: pin.since,
        id_floor,
    }
}

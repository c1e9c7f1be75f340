//! The owner of a key, as a shard's leader learns it.

use model::{Epoch, RegistryNumber, sabotage};

use super::arrival::opening;
use super::leader::Leader;
use super::question::Asked;
use super::step::Step;
use super::{PublishReply, PublishRequest, QuestionId, Refused};
use crate::Fault;
use crate::registry::{Pin, Reply};
use crate::shard::{Opening, read};
use crate::table::strand::StrandKey;

/// Whether a delivery's epoch is one of a message with an ordering key.
pub(super) fn is_keyed(epoch: Epoch) -> bool {
    epoch != Epoch(0)
}

impl Leader {
    /// Takes a publish in. One whose key has no open strand waits until the key is claimed.
    pub(super) fn publish(
        &mut self,
        step: &mut Step<'_>,
        request: PublishRequest,
    ) -> Result<(), Fault> {
        let key = request.key();
        if request.is_late(step.now) {
            request.refuse(Refused::DeadlinePassed, step.out);
        } else if !request.keyed {
            self.publishes.push(request, None, step.out);
        } else if let Some(reply) = self.transfers.elsewhere(&key) {
            request.answer(reply, step.out);
        } else if self.seals.freezes(&key) {
            self.claims.keep(request, step.out);
        } else if self.claims.holds(&key) {
            self.claims.hold(request, step.out);
        } else if let Some(opening) = self.publishes.opening_of(&key) {
            self.publishes.push(request, Some(opening), step.out);
        } else {
            // Only commands of this leader seal or drop a strand, so one that is open now will be
            // open when the publish is applied.
            let strand = read::strand(step.view, key.topic, key.strand)?;
            if strand.is_some_and(|strand| !strand.sealed) {
                self.publishes.push(request, None, step.out);
            } else if read::topic(step.view, key.topic)?.closed {
                request.refuse(Refused::TopicClosed, step.out);
            } else {
                self.claims.hold(request, step.out);
            }
        }
        Ok(())
    }

    /// A registry group has answered, or not.
    pub(super) fn registry_answered(
        &mut self,
        step: &mut Step<'_>,
        question: QuestionId,
        reply: Option<Reply>,
    ) -> Result<(), Fault> {
        let (registry, asked) = self.questions.answered(question);
        match (asked, reply) {
            (Asked::Claim(keys), Some(reply)) => self.claimed(step, registry, keys, &reply)?,
            (Asked::Claim(keys), None) => self.claims.unanswered(step.now, keys),
            (Asked::Release(keys) | Asked::Move(keys), reply) => {
                self.released(step, registry, &keys, reply.as_ref())?;
            }
            (Asked::Look(copies), reply) => {
                self.arrivals_looked_at(step, registry, &copies, reply.as_ref())?;
            }
            // A pin that is still there is found again by the sweep of its group.
            (Asked::RemoveAbsent, _) => {}
        }
        Ok(())
    }

    fn claimed(
        &mut self,
        step: &mut Step<'_>,
        registry: RegistryNumber,
        keys: Vec<StrandKey>,
        reply: &Reply,
    ) -> Result<(), Fault> {
        let floor = read::epoch_floor(step.view, registry)?;
        for (key, pin) in keys.into_iter().zip(&reply.pins) {
            match pin {
                Some(pin) if pin.shard != self.shard => self.is_elsewhere(step, &key, pin),
                Some(pin) if pin.epoch > floor => {
                    let opening = opening(registry, pin, reply.id_floor);
                    if self.opens_copy(step, &key, pin, opening)? {
                        continue;
                    }
                    self.claims.refuse_late(step.now, &key, step.out);
                    if !self.claims.holds(&key) {
                        self.seals.is_absent(key, pin.epoch);
                    }
                    for request in self.claims.take(&key) {
                        self.publishes.push(request, Some(opening), step.out);
                    }
                }
                // The strand may have come and gone since the registry answered.
                _ => self.claims.ask_again(key),
            }
        }
        Ok(())
    }

    /// Whether the key has come here by a move, so that its copy is opened, now or later, and not
    /// an empty strand.
    fn opens_copy(
        &mut self,
        step: &mut Step<'_>,
        key: &StrandKey,
        pin: &Pin,
        opening: Opening,
    ) -> Result<bool, Fault> {
        let is_here = read::strand(step.view, key.topic, key.strand)?.is_some();
        let Some(id) = pin.moved.filter(|_| !is_here) else {
            return Ok(false);
        };
        if sabotage!("moved-key-opens-empty") {
            return Ok(false);
        }
        if !self.claimed_copy(step, key, id, opening)? {
            self.claims.unanswered(step.now, vec![*key]);
        }
        Ok(true)
    }

    fn is_elsewhere(&mut self, step: &mut Step<'_>, key: &StrandKey, pin: &Pin) {
        let reply = PublishReply::Moved {
            shard: pin.shard,
            epoch: pin.epoch,
        };
        for request in self.claims.take(key) {
            request.answer(reply, step.out);
        }
    }
}

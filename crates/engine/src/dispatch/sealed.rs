//! What a leader does about its sealed strands: it follows from their pins, however often they are
//! asked for, and whoever sealed them.

use model::{Epoch, RegistryNumber, sabotage};

use super::leader::Leader;
use super::question::Asked;
use super::seals::Sealing;
use super::step::Step;
use crate::Fault;
use crate::registry::{PinRelease, Release, Reply};
use crate::shard::{Opening, read};
use crate::table::strand::{Strand, StrandKey};

/// Questions of one group about sealed strands on their way at once.
const QUESTIONS_MAX: usize = 2;

impl Leader {
    /// Asks for the pins of sealed strands whose turn it is. The question releases them, where they
    /// still are as they were when the strands were sealed: repeated, it does no harm.
    pub(super) fn ask_for_sealed(&mut self, step: &mut Step<'_>) -> Result<(), Fault> {
        loop {
            let asked = |registry| self.questions.open_to(registry, Asked::is_release);
            let may_ask = |registry| asked(registry) < QUESTIONS_MAX;
            let Some((registry, keys)) = self.seals.take_due(step.now, may_ask) else {
                return Ok(());
            };
            let mut pins = Vec::with_capacity(keys.len());
            for key in keys {
                self.claims.refuse_late(step.now, &key, step.out);
                match sealed(step, &key)? {
                    Some(strand) => pins.push(PinRelease {
                        key,
                        epoch: strand.epoch,
                        last: Some(strand.last),
                    }),
                    None => self.unfreeze(step, &key)?,
                }
            }
            if !pins.is_empty() {
                let shard = self.shard;
                let release = Release { shard, pins };
                self.questions.release(registry, release, step.out);
            }
        }
    }

    /// A registry group has said how the pins of sealed strands are, or has not.
    pub(super) fn released(
        &mut self,
        step: &mut Step<'_>,
        registry: RegistryNumber,
        keys: &[StrandKey],
        reply: Option<&Reply>,
    ) -> Result<(), Fault> {
        for (place, key) in keys.iter().enumerate() {
            match (sealed(step, key)?, reply) {
                (None, _) => self.unfreeze(step, key)?,
                (Some(_), None) => self.seals.ask_later(*key, step.now),
                (Some(strand), Some(reply)) => {
                    self.decide(step, registry, (key, &strand), reply, place);
                }
            }
        }
        Ok(())
    }

    /// What is to be done with a sealed strand, by its pin.
    fn decide(
        &mut self,
        step: &Step<'_>,
        registry: RegistryNumber,
        (key, strand): (&StrandKey, &Strand),
        reply: &Reply,
        place: usize,
    ) {
        let Some(pin) = reply.pins[place] else {
            // Said before the strand was opened, it is about an earlier one.
            match reply.as_of >= strand.epoch || sabotage!("old-answer-drops") {
                true => self.seals.drop(*key, strand.epoch),
                false => self.seals.ask_later(*key, step.now),
            }
            return;
        };
        if pin.epoch <= strand.epoch {
            self.seals.ask_later(*key, step.now);
        } else if pin.shard == self.shard && pin.since <= strand.epoch {
            let opening = Opening {
                registry,
                epoch: pin.epoch,
                since: pin.since,
                id_floor: reply.id_floor,
            };
            self.seals.reopen(*key, opening);
        } else {
            self.seals.drop(*key, strand.epoch);
        }
    }

    /// A command about strands is through the log. What it did stands in the rows.
    pub(super) fn sealing_logged(
        &mut self,
        step: &mut Step<'_>,
        sealing: Sealing,
    ) -> Result<(), Fault> {
        match sealing {
            Sealing::Strands(keys) => {
                for key in keys {
                    match sealed(step, &key)? {
                        Some(_) => self.seals.is_sealed(key, step.now),
                        None => self.unfreeze(step, &key)?,
                    }
                }
            }
            Sealing::Absent(strands) => self.release_absent(step, strands)?,
        }
        Ok(())
    }

    /// The publishes of a strand that is frozen no more go on, in order.
    fn unfreeze(&mut self, step: &mut Step<'_>, key: &StrandKey) -> Result<(), Fault> {
        self.seals.forget(key);
        for request in self.claims.take(key) {
            self.publish(step, request)?;
        }
        Ok(())
    }

    /// Removes pins that have no strand here and never will have one.
    fn release_absent(
        &mut self,
        step: &mut Step<'_>,
        strands: Vec<(StrandKey, Epoch)>,
    ) -> Result<(), Fault> {
        let mut pins = Vec::with_capacity(strands.len());
        for (key, epoch) in strands {
            if read::strand(step.view, key.topic, key.strand)?.is_none() {
                let last = None;
                pins.push(PinRelease { key, epoch, last });
            }
        }
        if let Some(first) = pins.first() {
            let registry = self.registries.of(first.key.strand);
            let shard = self.shard;
            let release = Release { shard, pins };
            self.questions.remove_absent(registry, release, step.out);
        }
        Ok(())
    }
}

fn sealed(step: &Step<'_>, key: &StrandKey) -> Result<Option<Strand>, Fault> {
    let strand = read::strand(step.view, key.topic, key.strand)?;
    Ok(strand.filter(|strand| strand.sealed))
}

//! What a leader does about its sealed strands: it follows from their pins, however often they are
//! asked for, and whoever sealed them.

use std::time::Duration;

use model::{Epoch, RegistryNumber, sabotage};

use super::MoveReply;
use super::arrival::opening;
use super::leader::Leader;
use super::question::{Asked, look};
use super::seals::Sealing;
use super::step::Step;
use super::transfers::NextQuestion;
use crate::Fault;
use crate::kv::ViewExt;
use crate::registry::{MovePins, Pin, PinMove, PinRelease, Release, Reply};
use crate::shard::read;
use crate::table::sealed::{Purpose, Sealed};
use crate::table::strand::{Strand, StrandKey};

/// Questions of one group about sealed strands on their way at once.
const QUESTIONS_MAX: usize = 8;
/// How often another shard is told to open its copy, until it says that it has.
const DRIVE_EVERY: Duration = Duration::from_millis(200);

/// What is to be asked of one group.
#[derive(Default)]
struct Wanted {
    releases: Vec<PinRelease>,
    moves: Vec<PinMove>,
}

impl Leader {
    /// Goes on with the sealed strands whose turn it is. What is asked of their registry groups is
    /// carried out only where the pins still are as they were when the strands were sealed:
    /// repeated, it does no harm, and its answer says how the pins are.
    pub(super) fn ask_for_sealed(&mut self, step: &mut Step<'_>) -> Result<(), Fault> {
        loop {
            let asked = |registry| self.questions.open_to(registry, Asked::is_release);
            let may_ask = |registry| asked(registry) < QUESTIONS_MAX;
            let Some((registry, keys)) = self.seals.take_due(step.now, may_ask) else {
                return Ok(());
            };
            let mut wanted = Wanted::default();
            for key in keys {
                self.claims.refuse_late(step.now, &key, step.out);
                match sealed(step, &key)? {
                    Some(strand) => self.work_on(step, key, &strand, &mut wanted)?,
                    None => self.unfreeze(step, &key)?,
                }
            }
            if !wanted.releases.is_empty() {
                let (shard, pins) = (self.shard, wanted.releases);
                let release = Release { shard, pins };
                self.questions.release(registry, release, step.out);
            }
            if !wanted.moves.is_empty() {
                let moves = MovePins {
                    moves: wanted.moves,
                };
                self.questions.move_pins(registry, moves, step.out);
            }
        }
    }

    /// What a sealed strand needs next.
    fn work_on(
        &mut self,
        step: &mut Step<'_>,
        key: StrandKey,
        strand: &Strand,
        wanted: &mut Wanted,
    ) -> Result<(), Fault> {
        let Some(Purpose::Move { id, to }) = purpose(step, &key)? else {
            wanted.releases.push(PinRelease {
                key,
                epoch: strand.epoch,
                last: Some(strand.last),
            });
            return Ok(());
        };
        let at = (step.now, step.view);
        let next = self
            .transfers
            .go_on(at, (&key, strand), (id, to), step.out)?;
        let pin_move = |to, moved| PinMove {
            key,
            from: strand.epoch,
            to,
            moved,
            last: strand.last,
        };
        match next {
            NextQuestion::None => self.seals.ask_later(key, step.now),
            NextQuestion::Look => wanted.releases.push(look(key)),
            NextQuestion::Move(id, to) => wanted.moves.push(pin_move(to, Some(id))),
            NextQuestion::Undo => wanted.moves.push(pin_move(self.shard, None)),
        }
        Ok(())
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
            // Another message about the strand has decided already.
            if self.seals.is_logging(key) || !self.seals.freezes(key) {
                continue;
            }
            match (sealed(step, key)?, reply) {
                (None, _) => self.unfreeze(step, key)?,
                (Some(_), None) => self.seals.ask_later(*key, step.now),
                (Some(strand), Some(reply)) => {
                    self.decide(step, registry, (key, &strand), reply, place)?;
                }
            }
        }
        Ok(())
    }

    /// What is to be done with a sealed strand, by its pin.
    fn decide(
        &mut self,
        step: &mut Step<'_>,
        registry: RegistryNumber,
        (key, strand): (&StrandKey, &Strand),
        reply: &Reply,
        place: usize,
    ) -> Result<(), Fault> {
        let Some(pin) = reply.pins[place] else {
            // Said before the strand was opened, it is about an earlier one.
            match reply.as_of >= strand.epoch || sabotage!("old-answer-drops") {
                true => self.seals.drop(*key, strand.epoch),
                false => self.seals.ask_later(*key, step.now),
            }
            return Ok(());
        };
        let opening = opening(registry, &pin, reply.id_floor);
        let is_here = pin.shard == self.shard;
        if pin.epoch < strand.epoch {
            self.seals.ask_later(*key, step.now);
        } else if is_here && pin.epoch == strand.epoch {
            match self.transfers.is_here(key) {
                true => self.seals.is_sealed(*key, step.now),
                false => self.seals.ask_later(*key, step.now),
            }
        } else if is_here && reopens(&pin, strand) {
            self.seals.reopen(*key, opening);
        } else if !is_here && names_copy_of(step, key, &pin)? {
            // The copy is opened first, then the other shard says that this one is to go.
            self.transfers.is_there(key, opening);
            self.seals.is_sealed(*key, step.now.plus(DRIVE_EVERY));
            self.drive(step, key, strand)?;
        } else {
            self.seals.drop(*key, strand.epoch);
        }
        Ok(())
    }

    /// Has the other shard open its copy of a strand.
    fn drive(
        &mut self,
        step: &mut Step<'_>,
        key: &StrandKey,
        strand: &Strand,
    ) -> Result<(), Fault> {
        if let Some(Purpose::Move { id, to }) = purpose(step, key)? {
            let at = (step.now, step.view);
            self.transfers
                .go_on(at, (key, strand), (id, to), step.out)?;
        }
        Ok(())
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
        let is_here = read::strand(step.view, key.topic, key.strand)?.is_some();
        let moved = match is_here {
            true => MoveReply::Undone,
            false => MoveReply::Moved,
        };
        self.transfers.end(key, moved, step.out);
        for request in self.claims.take(key) {
            self.publish(step, request)?;
        }
        Ok(())
    }

    /// Old pins of this shard: those go that have no strand here. What the next publish of such a key
    /// opens, it opens at an epoch of its own.
    pub(super) fn look_for_strands(
        &mut self,
        step: &mut Step<'_>,
        pins: Vec<(StrandKey, Epoch)>,
    ) -> Result<(), Fault> {
        for (key, epoch) in pins {
            let is_in_use = self.claims.holds(&key) || self.seals.freezes(&key);
            let strand = read::strand(step.view, key.topic, key.strand)?;
            if strand.is_none() && !is_in_use {
                self.seals.is_absent(key, epoch);
            }
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

/// Whether a sealed strand opens at its pin: it has not been anywhere else since it was sealed.
fn reopens(pin: &Pin, strand: &Strand) -> bool {
    pin.since <= strand.epoch || sabotage!("earlier-ownership-reopens")
}

/// Whether a pin elsewhere names the copy of a strand that is sealed here.
fn names_copy_of(step: &Step<'_>, key: &StrandKey, pin: &Pin) -> Result<bool, Fault> {
    Ok(match purpose(step, key)? {
        Some(Purpose::Move { id, to }) => pin.moved == Some(id) && pin.shard == to,
        _ => false,
    })
}

fn purpose(step: &Step<'_>, key: &StrandKey) -> Result<Option<Purpose>, Fault> {
    let sealed = step.view.row::<Sealed>(key)?;
    Ok(sealed.map(|sealed| sealed.purpose))
}

fn sealed(step: &Step<'_>, key: &StrandKey) -> Result<Option<Strand>, Fault> {
    let strand = read::strand(step.view, key.topic, key.strand)?;
    Ok(strand.filter(|strand| strand.sealed))
}

//! Questions to registry groups, until they are answered.

use std::collections::BTreeMap;

use model::{Epoch, RegistryNumber, ShardNumber};

use super::{Output, QuestionId};
use crate::registry::{self, Claim, MovePins, PinRelease, Release};
use crate::table::staged::StagedKey;
use crate::table::strand::StrandKey;

/// What was asked.
#[derive(Debug)]
pub(super) enum Asked {
    /// Who owns these keys?
    Claim(Vec<StrandKey>),
    /// How are the pins of these sealed strands? They go where nothing has happened to them.
    Release(Vec<StrandKey>),
    /// The pins of these sealed strands are to move, or to stay after all.
    Move(Vec<StrandKey>),
    /// How are the pins of these copies?
    Look(Vec<StagedKey>),
    /// These pins are to go, since they have no strand.
    RemoveAbsent,
}

impl Asked {
    pub(super) fn is_claim(&self) -> bool {
        matches!(self, Asked::Claim(_))
    }

    pub(super) fn is_release(&self) -> bool {
        matches!(self, Asked::Release(_) | Asked::Move(_))
    }
}

/// The questions on their way.
#[derive(Debug, Default)]
pub(super) struct Questions {
    asked: u64,
    open: BTreeMap<QuestionId, (RegistryNumber, Asked)>,
}

impl Questions {
    /// Asks for the owner of keys, all of one group.
    pub(super) fn claim(&mut self, registry: RegistryNumber, claim: Claim, out: &mut Vec<Output>) {
        let asked = Asked::Claim(claim.strands.clone());
        self.ask(registry, registry::Command::Claim(claim), asked, out);
    }

    /// Asks for the pins of sealed strands, all of one group, to go.
    pub(super) fn release(
        &mut self,
        registry: RegistryNumber,
        release: Release,
        out: &mut Vec<Output>,
    ) {
        let asked = Asked::Release(release.pins.iter().map(|pin| pin.key).collect());
        self.ask(registry, registry::Command::Release(release), asked, out);
    }

    /// Asks for the pins of sealed strands, all of one group, to move.
    pub(super) fn move_pins(
        &mut self,
        registry: RegistryNumber,
        moves: MovePins,
        out: &mut Vec<Output>,
    ) {
        let asked = Asked::Move(moves.moves.iter().map(|pin| pin.key).collect());
        self.ask(registry, registry::Command::Move(moves), asked, out);
    }

    /// Asks how the pins of copies are, all of one group.
    pub(super) fn look(
        &mut self,
        registry: RegistryNumber,
        shard: ShardNumber,
        copies: Vec<StagedKey>,
        out: &mut Vec<Output>,
    ) {
        let pins = copies.iter().map(|copy| look(copy.strand_key())).collect();
        let release = registry::Command::Release(Release { shard, pins });
        self.ask(registry, release, Asked::Look(copies), out);
    }

    /// Asks for pins without a strand, all of one group, to go.
    pub(super) fn remove_absent(
        &mut self,
        registry: RegistryNumber,
        release: Release,
        out: &mut Vec<Output>,
    ) {
        let command = registry::Command::Release(release);
        self.ask(registry, command, Asked::RemoveAbsent, out);
    }

    /// How many questions of a kind to a group are on their way.
    pub(super) fn open_to(&self, registry: RegistryNumber, kind: impl Fn(&Asked) -> bool) -> usize {
        let open = self.open.values();
        open.filter(|(group, asked)| *group == registry && kind(asked))
            .count()
    }

    /// What was asked, and whom.
    ///
    /// # Panics
    /// When it was answered before.
    pub(super) fn answered(&mut self, question: QuestionId) -> (RegistryNumber, Asked) {
        let open = self.open.remove(&question);
        open.unwrap_or_else(|| panic!("{question:?} is answered twice"))
    }

    fn ask(
        &mut self,
        registry: RegistryNumber,
        command: registry::Command,
        asked: Asked,
        out: &mut Vec<Output>,
    ) {
        self.asked += 1;
        let question = QuestionId(self.asked);
        self.open.insert(question, (registry, asked));
        out.push(Output::AskRegistry {
            question,
            registry,
            command,
        });
    }
}

/// Releases nothing, because no pin has this epoch, and is answered with the pin as it is.
pub(super) fn look(key: StrandKey) -> PinRelease {
    let (epoch, last) = (Epoch(0), None);
    PinRelease { key, epoch, last }
}

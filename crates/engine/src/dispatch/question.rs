//! Questions to registry groups, until they are answered.

use std::collections::BTreeMap;

use model::RegistryNumber;

use super::{Output, QuestionId};
use crate::registry::{self, Claim, Release};
use crate::table::strand::StrandKey;

/// What was asked.
#[derive(Debug)]
pub(super) enum Asked {
    /// Who owns these keys?
    Claim(Vec<StrandKey>),
    /// How are the pins of these sealed strands? They go where nothing has happened to them.
    Release(Vec<StrandKey>),
    /// These pins are to go, since they have no strand.
    RemoveAbsent,
}

impl Asked {
    pub(super) fn is_claim(&self) -> bool {
        matches!(self, Asked::Claim(_))
    }

    pub(super) fn is_release(&self) -> bool {
        matches!(self, Asked::Release(_))
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

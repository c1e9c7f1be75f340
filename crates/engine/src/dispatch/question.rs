//! Questions to registry groups, until they are answered.

use std::collections::BTreeMap;

use model::RegistryNumber;

use super::{Output, QuestionId};
use crate::registry::{self, Claim};
use crate::table::strand::StrandKey;

/// What was asked.
#[derive(Debug)]
pub(super) enum Asked {
    /// Who owns these keys?
    Claim(Vec<StrandKey>),
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

    /// How many questions to a group are on their way.
    pub(super) fn open_to(&self, registry: RegistryNumber) -> usize {
        let open = self.open.values();
        open.filter(|(group, _)| *group == registry).count()
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

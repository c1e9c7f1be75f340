//! The one registry group: it answers after a while, or not at all.

use engine::Fault;
use engine::dispatch::{Input, QuestionId};
use engine::kv::Overlay;
use engine::registry::{self, Command};
use model::Term;

use super::{Cluster, Happening};

/// Of a hundred questions so many are lost on their way, and so many answers.
const LOST_PERCENT: u64 = 5;

impl Cluster {
    /// The leader asks. Its question may be carried out late, when the leader is gone.
    pub(super) fn ask_registry(&mut self, question: QuestionId, command: Command) {
        let wait = self.network() + self.chance.up_to(self.plan.disk_max);
        let happening = match self.loses_question() {
            true => unanswered(self.term, question),
            false => Happening::Ask(self.term, question, Box::new(command)),
        };
        self.plan_in(wait, happening);
    }

    /// The question has arrived.
    pub(super) fn asked(
        &mut self,
        term: Term,
        question: QuestionId,
        command: &Command,
    ) -> Result<(), Fault> {
        let mut overlay = Overlay::new(&self.registry);
        let reply = registry::apply(&mut overlay, command)?;
        let writes = overlay.into_writes();
        self.registry.commit(writes);
        let wait = self.network();
        let happening = match self.loses_question() {
            true => unanswered(term, question),
            false => answer(term, question, Some(reply)),
        };
        self.plan_in(wait, happening);
        Ok(())
    }

    fn loses_question(&mut self) -> bool {
        !self.is_draining && self.chance.percent(LOST_PERCENT)
    }
}

fn unanswered(term: Term, question: QuestionId) -> Happening {
    answer(term, question, None)
}

fn answer(term: Term, question: QuestionId, reply: Option<registry::Reply>) -> Happening {
    let answer = Input::RegistryAnswered { question, reply };
    Happening::Arrive(term, Box::new(answer))
}

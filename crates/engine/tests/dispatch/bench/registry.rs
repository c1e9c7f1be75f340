//! The one registry group that the leader asks.

use engine::dispatch::Input;
use engine::kv::Overlay;
use engine::registry::{self, Command, Pin, Reply};
use engine::table::strand::StrandKey;
use model::{Incarnation, KeyHash};

use super::Bench;

impl Bench {
    /// Lets the registry group answer the oldest question.
    pub(crate) fn answer_question(&mut self) -> bool {
        let Some((question, command)) = self.questions.pop_front() else {
            return false;
        };
        let reply = Some(self.registry(&command));
        self.input(Input::RegistryAnswered { question, reply });
        true
    }

    /// The oldest question is lost on its way, or its answer is.
    pub(crate) fn lose_question(&mut self) {
        let (question, _) = self.questions.pop_front().expect("there is a question");
        let reply = None;
        self.input(Input::RegistryAnswered { question, reply });
    }

    /// The oldest question is carried out, and its answer is lost.
    pub(crate) fn carry_out_and_lose_question(&mut self) {
        let (_, command) = self.questions.front().cloned().expect("a question");
        self.registry(&command);
        self.lose_question();
    }

    /// The oldest question is answered with this.
    pub(crate) fn answer_question_with(&mut self, reply: Reply) {
        let (question, _) = self.questions.pop_front().expect("there is a question");
        let reply = Some(reply);
        self.input(Input::RegistryAnswered { question, reply });
    }

    /// Every pin of the group.
    pub(crate) fn pins(&self) -> Vec<(StrandKey, Pin)> {
        let first = StrandKey {
            topic: Incarnation(0),
            strand: KeyHash([0; 16]),
        };
        let pins = registry::read::pins(&self.registry, first);
        pins.map(|row| row.unwrap()).collect()
    }

    /// Applies a command to the registry group.
    pub(crate) fn registry(&mut self, command: &Command) -> Reply {
        let mut overlay = Overlay::new(&self.registry);
        let reply = registry::apply(&mut overlay, command).unwrap();
        let writes = overlay.into_writes();
        self.registry.commit(writes);
        reply
    }
}

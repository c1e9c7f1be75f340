//! The one registry group that the leader asks.

use engine::dispatch::Input;
use engine::kv::Overlay;
use engine::registry::{self, Command, Reply};

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

    /// Applies a command to the registry group.
    pub(crate) fn registry(&mut self, command: &Command) -> Reply {
        let mut overlay = Overlay::new(&self.registry);
        let reply = registry::apply(&mut overlay, command).unwrap();
        let writes = overlay.into_writes();
        self.registry.commit(writes);
        reply
    }
}

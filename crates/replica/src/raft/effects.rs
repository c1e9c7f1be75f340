//! What the applied changes of the catalogue mean for the shards, on its way to the leaders on
//! this node. Every node applies the same changes, so each tells its own.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use engine::shard;

use super::state::UNPOISONED;

/// Notices that wait to be taken. A node that replays years of changes has more, and then compares
/// its shards with the catalogue as a whole.
const NOTICES_WAITING_MAX: usize = 4_096;

/// What has become of the catalogue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Notice {
    /// The entry at this index means these commands for every shard, in this order.
    Entry(u64, Vec<shard::Command>),
    /// More than can be told: what a shard lacks is found by comparing.
    Everything,
}

/// The way from a state to who hands its effects on. Clones are the same.
#[derive(Clone, Default)]
pub(crate) struct Effects(Arc<Mutex<Waiting>>);

#[derive(Default)]
struct Waiting {
    notices: VecDeque<Notice>,
    /// Whether everything must be compared, which covers each later notice.
    everything: bool,
}

impl Effects {
    /// Adds what one entry means. To be called before anyone can see that it is applied.
    pub(super) fn add(&self, index: u64, effects: Vec<shard::Command>) {
        let mut waiting = self.0.lock().expect(UNPOISONED);
        if waiting.everything || effects.is_empty() {
            return;
        }
        if waiting.notices.len() >= NOTICES_WAITING_MAX {
            waiting.compare_everything();
        } else {
            waiting.notices.push_back(Notice::Entry(index, effects));
        }
    }

    /// Adds that the state has jumped ahead. To be called when the new state can be read, and
    /// before anyone hears how far it has come.
    pub(super) fn add_everything(&self) {
        let mut waiting = self.0.lock().expect(UNPOISONED);
        waiting.compare_everything();
    }

    /// Takes all that waits, in order.
    pub(crate) fn take(&self) -> VecDeque<Notice> {
        let mut waiting = self.0.lock().expect(UNPOISONED);
        if std::mem::take(&mut waiting.everything) {
            return VecDeque::from([Notice::Everything]);
        }
        std::mem::take(&mut waiting.notices)
    }
}

impl Waiting {
    fn compare_everything(&mut self) {
        self.notices.clear();
        self.everything = true;
    }
}

#[cfg(test)]
mod tests {
    use engine::shard::{CloseTopic, Command};
    use model::Incarnation;

    use super::*;

    fn effects(topic: u64) -> Vec<Command> {
        let topic = Incarnation(topic);
        vec![Command::CloseTopic(CloseTopic { topic })]
    }

    #[test]
    fn notices_are_taken_once_and_in_order() {
        let waiting = Effects::default();
        waiting.add(3, effects(1));
        waiting.add(4, Vec::new());
        waiting.add(5, effects(2));
        let taken = [Notice::Entry(3, effects(1)), Notice::Entry(5, effects(2))];
        assert_eq!(waiting.take(), taken);
        assert_eq!(waiting.take(), []);
    }

    #[test]
    fn a_jump_covers_what_came_before_and_after() {
        let waiting = Effects::default();
        waiting.add(3, effects(1));
        waiting.add_everything();
        waiting.add(9, effects(2));
        assert_eq!(waiting.take(), [Notice::Everything]);
        assert_eq!(waiting.take(), []);
    }

    #[test]
    fn too_many_notices_become_one() {
        let waiting = Effects::default();
        for index in 0..=NOTICES_WAITING_MAX as u64 {
            waiting.add(index, effects(index));
        }
        waiting.add(u64::MAX, effects(1));
        assert_eq!(waiting.take(), [Notice::Everything]);
        waiting.add(7, effects(7));
        assert_eq!(waiting.take(), [Notice::Entry(7, effects(7))]);
    }
}

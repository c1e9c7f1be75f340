//! Which format levels the nodes know, and when the cluster's may rise.

use std::collections::BTreeMap;

use model::{FormatLevel, NodeId};

/// What one leadership of the control group has heard.
#[derive(Debug, Default)]
pub(super) struct Formats(BTreeMap<NodeId, FormatLevel>);

impl Formats {
    /// A node says which level it knows.
    pub(super) fn hear(&mut self, node: NodeId, knows: FormatLevel) {
        self.0.insert(node, knows);
    }

    /// The next level, if each of `members` has said that it knows it. One that is silent may run
    /// an older program.
    pub(super) fn next(
        &self,
        present: FormatLevel,
        mut members: impl Iterator<Item = NodeId>,
    ) -> Option<FormatLevel> {
        let next = present.next();
        let knows = |node: NodeId| self.0.get(&node).is_some_and(|knows| *knows >= next);
        let all = members.all(knows) || model::sabotage!("format-rises-unasked");
        all.then_some(next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OLD: FormatLevel = FormatLevel(4);
    const NEW: FormatLevel = FormatLevel(5);

    fn members() -> impl Iterator<Item = NodeId> {
        [1, 2].map(NodeId).into_iter()
    }

    #[test]
    fn the_level_rises_when_every_member_knows_the_next() {
        let mut formats = Formats::default();
        formats.hear(NodeId(1), FormatLevel(6));
        assert_eq!(
            formats.next(OLD, members()),
            None,
            "nothing is heard of one"
        );
        formats.hear(NodeId(2), OLD);
        assert_eq!(formats.next(OLD, members()), None, "one is old");
        formats.hear(NodeId(2), NEW);
        assert_eq!(formats.next(OLD, members()), Some(NEW), "one by one");
        assert_eq!(formats.next(NEW, members()), None);
        formats.hear(NodeId(1), OLD);
        assert_eq!(formats.next(OLD, members()), None, "it went back");
    }
}

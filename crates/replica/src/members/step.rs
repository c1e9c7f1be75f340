//! The next change of a group's members.
//!
//! New nodes learn first and vote when they have caught up; one voter is replaced at a time; nodes
//! that are not wanted any more stop voting, and then leave. So a group never depends on a replica
//! that has nothing yet, and a majority of it is there all the way.

use std::collections::BTreeSet;

use engine::control::Placement;
use model::NodeId;

use crate::raft::Members;

/// A change of members.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// A node follows.
    AddLearner(NodeId),
    /// These vote.
    ChangeVoters(BTreeSet<NodeId>),
    /// A node that follows without a vote leaves.
    RemoveLearner(NodeId),
}

/// The next step of a group that `leader` leads, or none while there is none to take: what is
/// wanted is reached, or a node has not caught up yet, or the leader itself is to go and must hand
/// over first.
pub(super) fn next(
    wanted: &Placement,
    present: &Members,
    leader: NodeId,
    caught_up: impl Fn(NodeId) -> bool,
) -> Option<Step> {
    let voters = match &present.voters[..] {
        [voters] => voters,
        // The last change stopped half-way: it is completed before anything else.
        [_, next] => return Some(Step::ChangeVoters(next.clone())),
        _ => return None,
    };
    let mut all_wanted = wanted.voters.union(&wanted.learners);
    let is_here = |node: &NodeId| voters.contains(node) || present.learners.contains(node);
    if let Some(new) = all_wanted.find(|node| !is_here(node)) {
        return Some(Step::AddLearner(*new));
    }
    if let Some(next) = next_voters(wanted, voters, leader, caught_up) {
        return Some(Step::ChangeVoters(next));
    }
    let is_wanted = |node: &NodeId| wanted.voters.contains(node) || wanted.learners.contains(node);
    let leaves = present.learners.iter().find(|node| !is_wanted(node));
    leaves.map(|node| Step::RemoveLearner(*node))
}

/// The present voters with one more, one fewer, or one replaced.
fn next_voters(
    wanted: &Placement,
    voters: &BTreeSet<NodeId>,
    leader: NodeId,
    caught_up: impl Fn(NodeId) -> bool,
) -> Option<BTreeSet<NodeId>> {
    let mut missing = wanted.voters.difference(voters).peekable();
    let complete = missing.peek().is_none();
    let comes = missing.copied().find(|node| caught_up(*node));
    let mut superfluous = voters.difference(&wanted.voters).copied();
    let goes = superfluous.find(|node| *node != leader);
    // A vote is given up for a new one, or when all that are wanted are there.
    if comes.is_none() && !(complete && goes.is_some()) {
        return None;
    }
    let mut next = voters.clone();
    next.extend(comes);
    if let Some(goes) = goes {
        next.remove(&goes);
    }
    Some(next)
}

#[cfg(test)]
mod tests {
    use model::{GroupId, RegionName, SurvivalGoal};

    use super::*;

    const LEADER: NodeId = NodeId(1);

    fn nodes<const N: usize>(ids: [u64; N]) -> BTreeSet<NodeId> {
        ids.map(NodeId).into()
    }

    fn wanted<const V: usize, const L: usize>(voters: [u64; V], learners: [u64; L]) -> Placement {
        let home = RegionName::parse("north").unwrap();
        let goal = SurvivalGoal::Region;
        Placement {
            learners: nodes(learners),
            ..Placement::new(GroupId::Control, home, goal, nodes(voters))
        }
    }

    fn members<const V: usize, const L: usize>(voters: [u64; V], learners: [u64; L]) -> Members {
        Members {
            voters: vec![nodes(voters)],
            learners: nodes(learners),
        }
    }

    /// All steps from one to the other, where everybody catches up at once.
    fn steps(wanted: &Placement, mut present: Members) -> Vec<Step> {
        let mut steps = Vec::new();
        while let Some(step) = next(wanted, &present, LEADER, |_| true) {
            match &step {
                Step::AddLearner(node) => {
                    present.learners.insert(*node);
                }
                Step::ChangeVoters(next) => {
                    let before = present.voters.remove(0);
                    let both: BTreeSet<_> = present.learners.union(&before).copied().collect();
                    present.learners = both.difference(next).copied().collect();
                    present.voters = vec![next.clone()];
                }
                Step::RemoveLearner(node) => {
                    present.learners.remove(node);
                }
            }
            steps.push(step);
            assert!(steps.len() < 20, "no end: {steps:?}");
        }
        steps
    }

    #[test]
    fn a_new_voter_learns_before_the_old_one_goes() {
        let steps = steps(&wanted([1, 2, 4], []), members([1, 2, 3], []));
        let expected = [
            Step::AddLearner(NodeId(4)),
            Step::ChangeVoters(nodes([1, 2, 4])),
            Step::RemoveLearner(NodeId(3)),
        ];
        assert_eq!(steps, expected);
    }

    #[test]
    fn a_group_of_one_grows_by_one_voter_at_a_time() {
        let steps = steps(&wanted([1, 2, 3], [4]), members([1], []));
        let votes: Vec<_> = steps
            .into_iter()
            .filter(|step| matches!(step, Step::ChangeVoters(_)))
            .collect();
        let expected = [
            Step::ChangeVoters(nodes([1, 2])),
            Step::ChangeVoters(nodes([1, 2, 3])),
        ];
        assert_eq!(votes, expected);
    }

    #[test]
    fn nobody_votes_who_has_not_caught_up() {
        let present = members([1, 2, 3], [4]);
        let step = next(&wanted([1, 2, 4], []), &present, LEADER, |_| false);
        assert_eq!(step, None);
    }

    #[test]
    fn a_change_that_stopped_half_way_is_completed_first() {
        let present = Members {
            voters: vec![nodes([1, 2, 3]), nodes([1, 2, 4])],
            learners: BTreeSet::new(),
        };
        let step = next(&wanted([1, 2, 5], []), &present, LEADER, |_| true);
        assert_eq!(step, Some(Step::ChangeVoters(nodes([1, 2, 4]))));
    }

    #[test]
    fn a_leader_does_not_remove_itself() {
        let step = next(
            &wanted([2, 3, 4], []),
            &members([1, 2, 3, 4], []),
            LEADER,
            |_| true,
        );
        assert_eq!(step, None);
    }

    #[test]
    fn what_is_as_wanted_stays() {
        let step = next(
            &wanted([1, 2, 3], [4]),
            &members([1, 2, 3], [4]),
            LEADER,
            |_| true,
        );
        assert_eq!(step, None);
    }
}

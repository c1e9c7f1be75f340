//! What the control group's leader hears from the nodes, each second with their renewals: who
//! leads which group, who votes there, and who says nothing any more.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use model::{GroupId, NodeId, Term};
use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use super::request::Led;

/// Leaders speak once a second: one that was not heard for so long is not taken for one any more.
const LEADER_HEARD_WITHIN: Duration = Duration::from_secs(6);

/// What one leadership has heard.
pub(super) struct Reports {
    /// When the leadership began: a node that was not heard since is silent since then.
    began: Instant,
    heard: BTreeMap<NodeId, Instant>,
    groups: BTreeMap<GroupId, Report>,
}

/// A group, in the words of its leader of the latest term that spoke.
struct Report {
    term: Term,
    led: LedGroup,
    heard: Instant,
}

/// The cluster as the control group's leader hears of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Survey {
    /// For how long each of the cluster's nodes has been silent. A node that is well speaks once a
    /// second. After a change of the leader it is counted anew.
    pub silent: BTreeMap<NodeId, Duration>,
    /// The groups, each as its leader last described it. One whose leader has not spoken yet, or not
    /// lately, is missing.
    pub groups: BTreeMap<GroupId, LedGroup>,
}

/// A group that has a leader.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LedGroup {
    /// Who leads it.
    pub leader: NodeId,
    /// Who votes in it.
    pub voters: BTreeSet<NodeId>,
}

impl Reports {
    pub(super) fn new() -> Self {
        Reports {
            began: Instant::now(),
            heard: BTreeMap::new(),
            groups: BTreeMap::new(),
        }
    }

    /// A node speaks, and tells what it leads.
    pub(super) fn hear(&mut self, node: NodeId, led: Vec<Led>) {
        let heard = Instant::now();
        self.heard.insert(node, heard);
        for Led {
            group,
            term,
            voters,
        } in led
        {
            let known = self.groups.get(&group);
            if known.is_none_or(|known| term >= known.term) {
                let leader = node;
                let led = LedGroup { leader, voters };
                self.groups.insert(group, Report { term, led, heard });
            }
        }
    }

    /// Who votes in each group, by the word of its leader.
    pub(super) fn voters(&self) -> BTreeMap<GroupId, BTreeSet<NodeId>> {
        let groups = self.groups.iter();
        groups
            .map(|(group, report)| (*group, report.led.voters.clone()))
            .collect()
    }

    /// How long a node has been silent.
    pub(super) fn silence(&self, node: NodeId) -> Duration {
        self.heard.get(&node).unwrap_or(&self.began).elapsed()
    }

    /// All of it, for these nodes.
    pub(super) fn survey(&self, nodes: impl Iterator<Item = NodeId>) -> Survey {
        let is_fresh = |report: &Report| report.heard.elapsed() < LEADER_HEARD_WITHIN;
        let groups = self.groups.iter();
        let groups = groups.filter(|(_, report)| is_fresh(report));
        Survey {
            silent: nodes.map(|node| (node, self.silence(node))).collect(),
            groups: groups
                .map(|(group, report)| (*group, report.led.clone()))
                .collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn led(term: u64, voters: &[u64]) -> Vec<Led> {
        vec![Led {
            group: GroupId::Control,
            term: Term(term),
            voters: voters.iter().copied().map(NodeId).collect(),
        }]
    }

    #[test]
    fn a_leader_of_the_past_is_not_believed() {
        let mut reports = Reports::new();
        reports.hear(NodeId(2), led(5, &[1, 2]));
        reports.hear(NodeId(1), led(4, &[1]));
        let survey = reports.survey([NodeId(1)].into_iter());
        assert_eq!(survey.groups[&GroupId::Control].leader, NodeId(2));
        assert_eq!(reports.voters()[&GroupId::Control].len(), 2);
    }

    #[tokio::test(start_paused = true)]
    async fn a_leader_that_is_silent_is_not_named_and_its_voters_are_not_forgotten() {
        let mut reports = Reports::new();
        reports.hear(NodeId(2), led(5, &[1, 2]));
        tokio::time::advance(LEADER_HEARD_WITHIN).await;
        assert!(reports.survey([NodeId(2)].into_iter()).groups.is_empty());
        assert_eq!(reports.voters()[&GroupId::Control].len(), 2);
        reports.hear(NodeId(2), led(5, &[1, 2]));
        let survey = reports.survey([NodeId(2)].into_iter());
        assert_eq!(survey.groups[&GroupId::Control].leader, NodeId(2));
    }

    #[tokio::test(start_paused = true)]
    async fn a_node_that_was_never_heard_is_silent_since_the_leadership_began() {
        let mut reports = Reports::new();
        tokio::time::advance(Duration::from_secs(7)).await;
        reports.hear(NodeId(1), Vec::new());
        tokio::time::advance(Duration::from_secs(1)).await;
        assert_eq!(reports.silence(NodeId(1)), Duration::from_secs(1));
        assert_eq!(reports.silence(NodeId(2)), Duration::from_secs(8));
    }
}

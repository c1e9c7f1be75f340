//! Whether the replicas of all groups are alike, from what their nodes have said.

use std::collections::{BTreeMap, BTreeSet};

use proto::admin::node::State;
use proto::admin::{Node, ReplicaDigest};
use serde_json::{Value, json};

use crate::cli::output::Show;

/// What is known of the replicas of all groups.
#[derive(Default)]
pub(super) struct Groups {
    /// Nodes by number, with their names.
    names: BTreeMap<u64, String>,
    groups: BTreeMap<String, Group>,
}

/// What is known of the replicas of one group.
#[derive(Default)]
struct Group {
    /// The nodes that should have one.
    wanted: BTreeSet<u64>,
    /// How far each was when it was last heard of.
    latest: BTreeMap<u64, u64>,
    /// What each had come to right after an entry, by the entry's index.
    seen: BTreeMap<u64, BTreeMap<u64, Content>>,
}

/// What a replica has come to right after an entry. Alike replicas agree in both.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Content {
    /// The entry's term.
    term: u64,
    sum: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    /// All that there should be are the same right after the entry of this index.
    Alike(u64),
    /// Some are not.
    Differ(u64),
    /// They were never found at the same entry, or not all were heard of.
    Unknown,
}

/// The replicas of one group, compared.
pub(super) struct Compared {
    group: String,
    verdict: Verdict,
    /// The nodes that should have one, each with how far it is and what it has come to at the entry
    /// at which they are compared.
    replicas: Vec<Replica>,
}

struct Replica {
    node: String,
    index: Option<u64>,
    sum: Option<u64>,
}

impl Groups {
    /// These are the nodes now, and what they should have replicas of.
    pub(super) fn expect(&mut self, nodes: &[Node]) {
        for group in self.groups.values_mut() {
            group.wanted.clear();
        }
        for node in nodes.iter().filter(|node| has_a_disk(node)) {
            self.names.insert(node.id, node.name.clone());
            for group in [&node.votes, &node.learns, &node.still_votes]
                .into_iter()
                .flatten()
            {
                let group = self.groups.entry(group.clone()).or_default();
                group.wanted.insert(node.id);
            }
        }
    }

    /// A node says what a replica of its has come to.
    pub(super) fn hear(&mut self, digest: &ReplicaDigest) {
        let ReplicaDigest {
            node,
            term,
            index,
            sum,
            ..
        } = *digest;
        // One that a node has left stays on its disk, as it was then.
        let group = self.groups.get_mut(&digest.group);
        if let Some(group) = group.filter(|group| group.wanted.contains(&node)) {
            group.latest.insert(node, index);
            let at = group.seen.entry(index).or_default();
            at.insert(node, Content { term, sum });
        }
    }

    /// The groups of which it is not known whether their replicas are alike.
    pub(super) fn unknown(&self) -> Vec<String> {
        let groups = self.groups.iter();
        let unknown = groups.filter(|(_, group)| group.verdict() == Verdict::Unknown);
        unknown.map(|(name, _)| name.clone()).collect()
    }

    pub(super) fn compared(&self) -> Vec<Compared> {
        let compared = |(name, group): (&String, &Group)| Compared {
            group: name.clone(),
            verdict: group.verdict(),
            replicas: group.replicas(&self.names),
        };
        self.groups.iter().map(compared).collect()
    }
}

/// Whether a node has anything: those that are out, or have lost their disks, have not.
pub(super) fn has_a_disk(node: &Node) -> bool {
    !matches!(node.state(), State::Removed | State::Replaced)
}

impl Group {
    fn verdict(&self) -> Verdict {
        let differ = |at: &&u64| {
            let contents: BTreeSet<&Content> = self.seen[*at].values().collect();
            contents.len() > 1
        };
        let is_whole = |at: &&u64| self.wanted.iter().all(|it| self.seen[*at].contains_key(it));
        match self.seen.keys().find(differ) {
            Some(at) => Verdict::Differ(*at),
            None => match self.seen.keys().rev().find(is_whole) {
                Some(at) => Verdict::Alike(*at),
                None => Verdict::Unknown,
            },
        }
    }

    fn replicas(&self, names: &BTreeMap<u64, String>) -> Vec<Replica> {
        let at = match self.verdict() {
            Verdict::Alike(at) | Verdict::Differ(at) => Some(at),
            Verdict::Unknown => None,
        };
        let replica = |node: &u64| {
            let content = at.and_then(|at| self.seen[&at].get(node));
            Replica {
                node: names[node].clone(),
                index: content.and(at).or(self.latest.get(node).copied()),
                sum: content.map(|content| content.sum),
            }
        };
        self.wanted.iter().map(replica).collect()
    }
}

impl Compared {
    pub(super) fn is_alike(&self) -> bool {
        matches!(self.verdict, Verdict::Alike(_))
    }

    fn word(&self) -> &'static str {
        match self.verdict {
            Verdict::Alike(_) => "alike",
            Verdict::Differ(_) => "differ",
            Verdict::Unknown => "unknown",
        }
    }
}

impl Show for Compared {
    const COLUMNS: &'static [&'static str] = &["GROUP", "STATE", "REPLICAS"];

    fn cells(&self) -> Vec<String> {
        let replica = |replica: &Replica| match (replica.index, replica.sum) {
            (None, _) => format!("{} silent", replica.node),
            (Some(index), None) => format!("{} at {index}", replica.node),
            (Some(index), Some(sum)) => format!("{} at {index} {sum:016x}", replica.node),
        };
        let replicas: Vec<String> = self.replicas.iter().map(replica).collect();
        vec![
            self.group.clone(),
            self.word().to_owned(),
            replicas.join(", "),
        ]
    }

    fn json(&self) -> Value {
        let replica = |replica: &Replica| {
            json!({
                "node": replica.node,
                "index": replica.index,
                "sum": replica.sum.map(|sum| format!("{sum:016x}")),
            })
        };
        json!({
            "group": self.group,
            "state": self.word(),
            "replicas": self.replicas.iter().map(replica).collect::<Vec<_>>(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GROUP: &str = "shard-1";

    /// Two nodes that vote in the group, and one that has left it.
    fn groups() -> Groups {
        let node = |id: u64, votes: bool| Node {
            id,
            name: format!("node-{id}"),
            votes: votes.then(|| GROUP.to_owned()).into_iter().collect(),
            ..Node::default()
        };
        let mut groups = Groups::default();
        groups.expect(&[node(1, true), node(2, true), node(3, false)]);
        groups
    }

    fn said(node: u64, index: u64, sum: u64) -> ReplicaDigest {
        ReplicaDigest {
            node,
            group: GROUP.to_owned(),
            term: 1,
            index,
            sum,
        }
    }

    fn verdict_of(said: &[ReplicaDigest]) -> Verdict {
        let mut groups = groups();
        said.iter().for_each(|said| groups.hear(said));
        groups.groups[GROUP].verdict()
    }

    #[test]
    fn replicas_are_compared_at_the_same_entry_whenever_each_was_there() {
        assert_eq!(verdict_of(&[]), Verdict::Unknown);
        let behind = [said(1, 8, 80), said(2, 7, 70)];
        assert_eq!(verdict_of(&behind), Verdict::Unknown);
        let later = [said(1, 9, 90), said(2, 8, 80)];
        assert_eq!(
            verdict_of(&[&behind[..], &later].concat()),
            Verdict::Alike(8)
        );
        assert_eq!(
            verdict_of(&[&behind[..], &[said(2, 8, 81)]].concat()),
            Verdict::Differ(8)
        );
    }

    #[test]
    fn entries_of_two_terms_differ_and_what_was_left_behind_does_not_count() {
        let other = ReplicaDigest {
            term: 2,
            ..said(2, 8, 80)
        };
        assert_eq!(verdict_of(&[said(1, 8, 80), other]), Verdict::Differ(8));
        let left = [said(1, 8, 80), said(2, 8, 80), said(3, 8, 30)];
        assert_eq!(verdict_of(&left), Verdict::Alike(8));
    }

    #[test]
    fn a_node_that_is_silent_leaves_it_open() {
        let mut groups = groups();
        groups.hear(&said(1, 8, 80));
        assert_eq!(groups.unknown(), [GROUP]);
        let compared = &groups.compared()[0];
        assert!(!compared.is_alike());
        assert_eq!(
            compared.cells(),
            [GROUP, "unknown", "node-1 at 8, node-2 silent"]
        );
    }
}

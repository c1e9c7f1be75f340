//! A replica that lacks entries which nobody has any more gets the state itself.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use model::NodeId;
use tokio::task::JoinHandle;

use super::node::{Disk, Node, attach, commit, founded, leader_of, soon};
use crate::raft::{Core, Notice};

/// What one message weighs in these tests, in bytes.
const MESSAGE: usize = 200_000;

/// Messages in a state that takes some time to send: 20 chunks.
const MANY: usize = 100;

/// Three nodes, of which one is away and lacks what the others have cut off their logs.
async fn one_left_behind() -> (Vec<Node>, Disk) {
    let mut nodes = founded(3).await;
    let leader = leader_of(&nodes).await;
    let before = attach(&leader.core()).await;
    let id = leader.id();
    let away = nodes.iter().position(|node| node.id() != id);
    let away = nodes.remove(away.expect("there are two followers"));
    soon("the attachment", away.applies(before)).await;
    let away = away.kill().await;
    let leader = leader_of(&nodes).await;
    for _ in 0..MANY {
        commit(&leader.core(), &"x".repeat(MESSAGE)).await;
    }
    let last = commit(&leader.core(), "the last that is cut").await;
    soon("the cut", leader.cut_log_through(last)).await;
    (nodes, away)
}

/// Someone who publishes, while the log is cut as soon as it can be.
struct Writer {
    stop: Arc<AtomicBool>,
    task: JoinHandle<u64>,
}

impl Writer {
    fn start(leader: &Node) -> Writer {
        let stop = Arc::new(AtomicBool::new(false));
        let (stopped, core, store) = (stop.clone(), leader.core(), leader.store());
        let task = tokio::spawn(async move {
            let mut last = 0;
            while !stopped.load(Ordering::Relaxed) {
                last = commit(&core, "meanwhile").await;
                store.flush_state().expect("the disk is sound");
                core.cut_log(0).await.expect("the replica runs");
                // sleep: others get a turn between two publishes.
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            last
        });
        Writer { stop, task }
    }

    /// The last entry that was written.
    async fn stop(self) -> u64 {
        self.stop.store(true, Ordering::Relaxed);
        self.task.await.expect("every publish was answered")
    }
}

/// All nodes have the same state, with everything up to this entry.
async fn assert_same(nodes: &[Node], last: u64) {
    for node in nodes {
        soon("catching up", node.applies(last)).await;
    }
    let digests = async {
        loop {
            let digests: Vec<_> = nodes.iter().map(Node::digest).collect();
            let at: BTreeSet<_> = digests.iter().map(|digest| digest.at).collect();
            if at.len() == 1 {
                return digests;
            }
            // sleep: nothing tells of a state's position on all nodes.
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let digests = soon("the same position", digests).await;
    assert!(
        digests.iter().all(|digest| *digest == digests[0]),
        "{digests:?}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_follower_that_was_away_too_long_catches_up_while_writes_go_on() {
    let (mut nodes, away) = one_left_behind().await;
    let leader = leader_of(&nodes).await;
    let cut = leader.purged().expect("the log was cut");
    let writer = Writer::start(leader);
    let back = away.start(&nodes).await;
    soon("the checkpoint", back.applies(cut)).await;
    assert!(back.purged() >= Some(cut), "it came by a checkpoint");
    // Who follows what the entries mean hears that it did not see all of them.
    assert_eq!(back.core().effects().take(), [Notice::Everything]);
    nodes.push(back);
    let last = writer.stop().await;
    assert_same(&nodes, last).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_empty_node_joins_a_group_whose_log_was_cut() {
    let (mut nodes, _away) = one_left_behind().await;
    let new = Node::new(NodeId(4)).await;
    for node in &nodes {
        new.learn(node.id(), &node.address());
        node.learn(new.id(), &new.address());
    }
    let leader = leader_of(&nodes).await;
    let core: Core = leader.core();
    let writer = Writer::start(leader);
    let added = soon("the change", core.add_learner(new.id())).await;
    added.expect("the group has a majority");
    let cut = leader.purged().expect("the log was cut");
    soon("the checkpoint", new.applies(cut)).await;
    // It can be voted for, and has what was acknowledged.
    let mut voters: BTreeSet<NodeId> = nodes.iter().map(Node::id).collect();
    voters.insert(new.id());
    let changed = soon("the change", core.change_voters(voters)).await;
    changed.expect("the group has a majority");
    let last = writer.stop().await;
    nodes.push(new);
    assert_same(&nodes, last).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_is_killed_in_the_middle_of_a_checkpoint_gets_another() {
    let (mut nodes, away) = one_left_behind().await;
    let leader = leader_of(&nodes).await;
    let before = away.used();
    let back = away.start(&nodes).await;
    let begun = async {
        while back.used() < before + 2 * MESSAGE as u64 {
            tokio::task::yield_now().await;
        }
    };
    soon("a part of the checkpoint", begun).await;
    let killed = back.kill().await;
    let last = commit(&leader.core(), "after the kill").await;

    let back = killed.start(&nodes).await;
    assert_eq!(back.purged(), None, "it was killed before the end");
    nodes.push(back);
    assert_same(&nodes, last).await;
    assert!(nodes[2].purged().is_some(), "it came by a checkpoint");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_follower_that_lags_little_gets_the_entries_themselves() {
    let mut nodes = founded(3).await;
    let leader = leader_of(&nodes).await;
    let before = attach(&leader.core()).await;
    let id = leader.id();
    let away = nodes.iter().position(|node| node.id() != id);
    let away = nodes.remove(away.expect("there are two followers"));
    soon("the attachment", away.applies(before)).await;
    let away = away.kill().await;
    let leader = leader_of(&nodes).await;
    for _ in 0..20 {
        commit(&leader.core(), "not seen by one").await;
        leader.cut_log(1_000).await;
    }
    let last = commit(&leader.core(), "the last").await;
    assert!(leader.purged() < Some(before + 20), "{:?}", leader.purged());
    nodes.push(away.start(&nodes).await);
    assert_same(&nodes, last).await;
    assert_eq!(nodes[2].purged(), None, "it needed no checkpoint");
}

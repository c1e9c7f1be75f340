//! Three nodes in one process, over loopback: a group of them lives through what nodes do.

mod checkpoint;
mod network;
mod node;

use std::collections::BTreeSet;
use std::time::Duration;

use model::NodeId;
use tokio::time::Instant;

use network::{Cut, Relay};
use node::{GROUP, Node, commit, founded, leader_of, published, soon};

/// As long as three elections take at most, with the timing of these groups.
const LONG: Duration = Duration::from_secs(2);

#[tokio::test]
async fn what_one_node_proposes_stands_on_all_with_its_payload() {
    let nodes = founded(3).await;
    let leader = leader_of(&nodes).await;
    let entry = commit(&leader.core(), "hello").await;
    for node in &nodes {
        soon("the entry", node.applies(entry)).await;
        assert_eq!(published(node), ["hello"]);
    }
}

#[tokio::test]
async fn the_group_goes_on_without_its_leader_which_catches_up_when_it_returns() {
    let nodes = founded(3).await;
    let leader = leader_of(&nodes).await.id();
    let (gone, rest): (Vec<_>, Vec<_>) = nodes.into_iter().partition(|node| node.id() == leader);
    let gone = gone.into_iter().next().expect("the leader is one of them");
    commit(&gone.core(), "before").await;
    let gone = gone.shut_down().await;

    let next = leader_of(&rest).await;
    assert_ne!(next.id(), leader);
    let entry = commit(&next.core(), "without").await;

    let back = gone.start(&rest).await;
    soon("catching up", back.applies(entry)).await;
    assert_eq!(published(&back), ["before", "without"]);
}

#[tokio::test]
async fn a_follower_that_hears_nothing_deposes_nobody_and_catches_up() {
    let nodes = founded(3).await;
    let leader = leader_of(&nodes).await;
    let deaf = nodes.iter().find(|node| node.id() != leader.id());
    let deaf = deaf.expect("there are two followers");
    let mut relays = Vec::new();
    for node in nodes.iter().filter(|node| node.id() != deaf.id()) {
        let relay = Relay::to(deaf.address()).await;
        node.learn(deaf.id(), &relay.address());
        relays.push(relay);
    }
    commit(&leader.core(), "through the relay").await;
    let term = leader.term();

    relays.iter().for_each(|relay| relay.set(Cut::ToTarget));
    let since = Instant::now();
    let mut last = commit(&leader.core(), "unheard").await;
    while since.elapsed() < LONG {
        last = commit(&leader.core(), "unheard").await;
    }
    assert_eq!(leader.term(), term, "the leader was not deposed");

    relays.iter().for_each(|relay| relay.set(Cut::Nothing));
    soon("catching up", deaf.applies(last)).await;
}

#[tokio::test]
async fn a_dead_node_is_dialled_rarely_however_much_there_is_to_tell_it() {
    let nodes = founded(3).await;
    let leader = leader_of(&nodes).await.id();
    let (mut followers, leading): (Vec<_>, Vec<_>) =
        nodes.into_iter().partition(|node| node.id() != leader);
    let leader = leading.into_iter().next().expect("it is one of them");
    let dead = followers.pop().expect("there are two followers");
    let dead = dead.shut_down().await;

    let before = leader.dials(dead.id);
    let since = Instant::now();
    while since.elapsed() < LONG {
        commit(&leader.core(), "more").await;
    }
    // It rests for 200 ms at last, and not so long in the beginning.
    let dials = leader.dials(dead.id) - before;
    assert!(dials > 0, "the leader looks for it");
    assert!(dials <= 16, "{dials} dials within {LONG:?}");
}

#[tokio::test]
async fn a_replica_that_was_asked_only_does_not_campaign() {
    let nodes = founded(3).await;
    let stranger = Node::new(NodeId(9)).await;
    nodes
        .iter()
        .for_each(|node| stranger.learn(node.id(), &node.address()));
    // An empty replica, as a call of another node opens it.
    let core = stranger.core_opened().await;
    let leader = leader_of(&nodes).await;
    let since = Instant::now();
    while since.elapsed() < LONG {
        commit(&leader.core(), "meanwhile").await;
    }
    assert!(!core.exists().await.expect("it runs"));
    assert_eq!(core.leader(), None);
}

#[tokio::test]
async fn a_node_of_another_cluster_is_not_heard() {
    let nodes = founded(3).await;
    let stranger = Node::of_cluster("another", NodeId(1)).await;
    nodes
        .iter()
        .for_each(|node| stranger.learn(node.id(), &node.address()));
    let core = stranger.core_opened().await;
    let voters = nodes.iter().map(Node::id).chain([NodeId(1)]);
    core.found(voters.collect::<BTreeSet<_>>())
        .await
        .expect("it is empty");

    let leader = leader_of(&nodes).await;
    let since = Instant::now();
    while since.elapsed() < LONG {
        commit(&leader.core(), "undisturbed").await;
    }
    assert_eq!(core.leader(), None, "nobody voted for it");
    assert_eq!(
        stranger
            .groups()
            .get(GROUP)
            .expect("open")
            .members()
            .voters
            .len(),
        1
    );
}

#[tokio::test]
async fn any_node_reads_what_was_answered_before() {
    let nodes = founded(3).await;
    let leader = leader_of(&nodes).await;
    for round in 0..20 {
        let entry = commit(&leader.core(), "read me").await;
        for node in &nodes {
            soon("a read", node.reads()).await;
            let applied = node.applied();
            assert!(
                applied >= entry,
                "round {round}: {applied} is before {entry}"
            );
        }
    }
}

#[tokio::test]
async fn the_leadership_goes_where_it_is_handed() {
    let nodes = founded(3).await;
    let leader = leader_of(&nodes).await;
    let heir = nodes.iter().find(|node| node.id() != leader.id());
    let heir = heir.expect("there are two followers");
    let entry = commit(&leader.core(), "before").await;
    soon("the entry", heir.applies(entry)).await;
    let handed = leader.core().transfer_to(heir.id(), LONG).await;
    assert_eq!(handed, Ok(true));
    commit(&heir.core(), "after").await;
}

#[tokio::test]
async fn a_learner_becomes_a_voter_and_a_voter_leaves() {
    let mut nodes = founded(3).await;
    let fourth = Node::new(NodeId(4)).await;
    for node in &nodes {
        fourth.learn(node.id(), &node.address());
        node.learn(fourth.id(), &fourth.address());
    }
    let leader = leader_of(&nodes).await;
    let core = leader.core();
    let entry = commit(&core, "before").await;
    core.add_learner(fourth.id())
        .await
        .expect("the group has a majority");
    soon("catching up", fourth.applies(entry)).await;
    let gone = nodes.iter().map(Node::id).find(|id| *id != leader.id());
    let gone = gone.expect("there are two followers");
    let mut voters: BTreeSet<NodeId> = nodes.iter().map(Node::id).collect();
    voters.remove(&gone);
    voters.insert(fourth.id());
    soon("the change", core.change_voters(voters.clone()))
        .await
        .expect("a majority");
    soon("the removal", core.remove_learner(gone))
        .await
        .expect("a majority");
    assert_eq!(core.members().voters, [voters]);
    assert_eq!(core.members().learners, BTreeSet::new());
    nodes.push(fourth);
    let entry = commit(&core, "after").await;
    let fourth = nodes.last().expect("it was pushed");
    soon("the entry", fourth.applies(entry)).await;
}

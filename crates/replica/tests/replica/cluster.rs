//! Three nodes: they join, their groups spread over them, and they live without each other.

use std::collections::BTreeSet;
use std::time::Duration;

use engine::control::{Command, CreateTopic, Found, NewNode, Place, Placement, Reply, read};
use model::{GroupId, NodeId, NodeName, RegionName, ZoneName};
use replica::peer::{self, ServeError};
use replica::{Clock, Peers, Replicas, Settings};
use store::{Identity, MemoryDisk, Pace, Start, Store};
use tokio::net::TcpListener;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinHandle;

use crate::node::{SECRET, soon, topic_name};

const CLUSTER: &str = "test";
pub(crate) const FIRST: NodeId = NodeId(1);

/// A node at work, which listens for its peers.
pub(crate) struct Node {
    pub(crate) replicas: Replicas,
    disk: MemoryDisk,
    peers: Peers,
    stop: oneshot::Sender<()>,
    serving: JoinHandle<Result<(), ServeError>>,
}

impl Node {
    /// Founds a cluster on an empty disk, and starts its first node.
    pub(crate) async fn first((listener, new): (TcpListener, NewNode)) -> Node {
        let disk = MemoryDisk::new();
        let store = new_store(&disk, FIRST);
        let found = Found {
            secret: SECRET,
            cluster: CLUSTER.to_owned(),
            node: new,
            shards_per_region: 1,
            registries: 1,
        };
        let founded = Replicas::found(Settings::of_zone(FIRST), &store, Clock::machine(), found);
        soon("the founding", founded)
            .await
            .expect("the disk is empty");
        Node::start(listener, disk, store).await
    }

    /// A new node, let in by the first one.
    async fn joined(id: NodeId, first: &Node) -> Node {
        let (listener, new) = listen(id).await;
        join(first, id, new).await;
        let disk = MemoryDisk::new();
        let store = new_store(&disk, id);
        Node::start(listener, disk, store).await
    }

    /// Starts the node of a disk, which listens where others know it.
    pub(crate) async fn start(listener: TcpListener, disk: MemoryDisk, store: Store) -> Node {
        let node = store.identity().node;
        let cluster = CLUSTER.to_owned();
        let peers = Peers::new(peer::Settings::plain(cluster, node, region()));
        let (forwards, _) = mpsc::channel(1);
        let settings = Settings::of_zone(node);
        let clock = Clock::machine();
        let replicas = Replicas::start_among(peers.clone(), settings, store, clock, forwards);
        let replicas = soon("the start", replicas)
            .await
            .expect("the disk is whole");
        let (stop, stopped) = oneshot::channel();
        let serving = peer::serve(
            listener,
            replicas.routes(),
            replicas.open_routes(),
            peers.clone(),
            async move {
                let _ = stopped.await;
            },
        );
        Node {
            replicas,
            disk,
            peers,
            stop,
            serving: tokio::spawn(serving),
        }
    }

    /// Shuts the node down, and leaves its disk.
    pub(crate) async fn shut_down(self) -> MemoryDisk {
        soon("the shutdown", self.replicas.shutdown()).await;
        drop(self.stop);
        let served = soon("the end of the listener", self.serving).await;
        served
            .expect("it does not panic")
            .expect("it does not fail");
        self.disk
    }

    /// The node's disk, which outlives it.
    pub(crate) fn disk(&self) -> MemoryDisk {
        self.disk.clone()
    }

    pub(crate) async fn change(&self, command: Command) -> Reply {
        let changed = self.replicas.control().propose(command);
        soon("a change", changed).await.expect("this node leads")
    }

    pub(crate) async fn create_topic(&self, id: &str) {
        let reply = self.change(Command::CreateTopic(CreateTopic {
            name: topic_name(id),
            labels: Default::default(),
            storage_policy: None,
        }));
        assert!(matches!(reply.await, Reply::Topic(_)));
    }

    /// Wants the control group's replicas on other nodes.
    pub(crate) async fn place_control(&self, voters: &[u64], learners: &[u64]) {
        let present = placement(self);
        let wanted = Placement {
            voters: nodes(voters),
            learners: nodes(learners),
            ..present
        };
        assert_eq!(
            self.change(Command::Place(Place(vec![wanted]))).await,
            Reply::Done
        );
    }

    /// Waits until the node answers from a catalogue that is current, and has the topic.
    pub(crate) async fn sees_topic(&self, id: &str) {
        let sees = async {
            loop {
                if let Ok(catalogue) = self.replicas.control().read().await {
                    let topic = read::topic(catalogue, &topic_name(id));
                    assert!(topic.expect("it can be read").is_some(), "{id} is missing");
                    return;
                }
                // sleep: nothing tells when a new leader can be asked.
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        soon("an answer from the catalogue", sees).await;
    }
}

/// Lets a node into the cluster of `first`.
pub(crate) async fn join(first: &Node, id: NodeId, new: NewNode) {
    let joined = first.change(Command::Join(new)).await;
    assert_eq!(joined, Reply::Joined(id));
}

fn placement(node: &Node) -> Placement {
    let placement = read::placement(node.replicas.control().view(), GroupId::Control);
    placement
        .expect("it can be read")
        .expect("it has one from its first day")
}

fn nodes(ids: &[u64]) -> BTreeSet<NodeId> {
    ids.iter().copied().map(NodeId).collect()
}

fn region() -> RegionName {
    RegionName::parse("north").expect("a valid name")
}

/// The store on an empty disk of a node.
pub(crate) fn new_store(disk: &MemoryDisk, node: NodeId) -> Store {
    let cluster = CLUSTER.to_owned();
    let start = Start::New(Identity {
        cluster,
        node,
        called: None,
    });
    open(disk, start)
}

/// The store on the disk of a node that was started before.
pub(crate) fn old_store(disk: &MemoryDisk) -> Store {
    open(disk, Start::Existing)
}

fn open(disk: &MemoryDisk, start: Start) -> Store {
    let settings = store::Settings::new("memory", start);
    let store = Store::memory(disk, settings, Pace::AtOnce);
    store.expect("nobody else has the disk")
}

pub(crate) async fn listen(id: NodeId) -> (TcpListener, NewNode) {
    let listener = TcpListener::bind("127.0.0.1:0")
        .await
        .expect("loopback is there");
    let address = listener.local_addr().expect("it is bound").to_string();
    let new = NewNode {
        name: NodeName::parse(&format!("node-{id}")).expect("a valid name"),
        region: region(),
        zone: ZoneName::parse("a").expect("a valid name"),
        peer_address: address,
        client_address: String::new(),
        join: [id.0 as u8; 16],
    };
    (listener, new)
}

/// Three nodes, all of which vote in the control group.
async fn three() -> [Node; 3] {
    let first = Node::first(listen(FIRST).await).await;
    let second = Node::joined(NodeId(2), &first).await;
    let third = Node::joined(NodeId(3), &first).await;
    first.place_control(&[1, 2, 3], &[]).await;
    first.create_topic("everywhere").await;
    for node in [&second, &third] {
        soon("the catalogue", node.replicas.caught_up())
            .await
            .expect("it runs");
        node.sees_topic("everywhere").await;
    }
    [first, second, third]
}

#[tokio::test]
async fn every_node_answers_from_the_whole_catalogue() {
    let nodes = three().await;
    nodes[0].create_topic("later").await;
    for node in &nodes {
        node.sees_topic("later").await;
        let known = node.peers.known();
        assert_eq!(
            known.len(),
            2,
            "each node knows where the others are: {known:?}"
        );
    }
}

#[tokio::test]
async fn the_catalogue_survives_the_loss_of_the_node_it_was_founded_on() {
    let [first, second, third] = three().await;
    all_vote(&[&first, &second, &third]).await;
    first.shut_down().await;
    second.sees_topic("everywhere").await;
    third.sees_topic("everywhere").await;
}

#[tokio::test]
async fn leadership_leaves_a_node_that_hands_over() {
    let [first, second, third] = three().await;
    all_vote(&[&first, &second, &third]).await;
    let handed = first.replicas.hand_over(Duration::from_secs(10));
    soon("the hand-over", handed).await.expect("it runs");
    assert_ne!(first.replicas.control().leader(), Some(FIRST));
    second.sees_topic("everywhere").await;
}

#[tokio::test]
async fn no_change_and_no_read_fails_while_leadership_is_handed_over() {
    let [first, second, third] = three().await;
    all_vote(&[&first, &second, &third]).await;
    let (done, over) = watch::channel(false);
    let handed = async {
        let handed = first.replicas.hand_over(Duration::from_secs(10));
        soon("the hand-over", handed).await.expect("it runs");
        done.send_replace(true);
    };
    // `Node::create_topic` panics where it is told that the group is unavailable.
    let changes = async |node: &Node, who: &str| {
        for number in 0.. {
            node.create_topic(&format!("{who}-{number}")).await;
            let read = node.replicas.control().read();
            soon("a read", read).await.expect("a leader answers");
            if *over.borrow() {
                return;
            }
        }
    };
    let ((), ..) = tokio::join!(
        handed,
        changes(&first, "first"),
        changes(&second, "second"),
        changes(&third, "third"),
    );
    assert_ne!(first.replicas.control().leader(), Some(FIRST));
}

/// Waits until each node knows that these three vote, and that no other set is needed any more.
pub(crate) async fn all_vote(three: &[&Node]) {
    let all = async {
        for node in three {
            while node.replicas.voters(GroupId::Control) != [nodes(&[1, 2, 3])] {
                // sleep: the members of a group are not watched from outside.
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        }
    };
    soon("the votes of all nodes", all).await;
}

//! Catalogue leases among three nodes: whom a change waits for, and for how long.

use std::time::Duration;

use engine::control::{Command, CreateTopic, read};
use model::NodeId;
use replica::{ControlClient, StateView};
use store::MemoryDisk;
use tokio::net::TcpListener;
use tokio::runtime::{Builder, Runtime};
use tokio::time::Instant;

use crate::cluster::{FIRST, Node, all_vote, join, listen, new_store, old_store};
use crate::node::{soon, topic_name};

/// What is not stalled takes no longer, also on a machine with much to do. It is far below the ten
/// seconds of a lease.
const AT_ONCE: Duration = Duration::from_secs(6);
/// A lease, the election of a leader, and a machine with much to do.
const ONE_LEASE: Duration = Duration::from_secs(18);

/// A node that can be lost: it has a runtime of its own.
struct Apart {
    runtime: Own,
    node: Node,
    address: String,
}

/// A runtime that ends at once, wherever it is dropped: nothing on it goes on.
struct Own(Option<Runtime>);

impl Own {
    fn new() -> Self {
        let runtime = Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build();
        Own(Some(runtime.expect("the machine has threads")))
    }

    /// Runs something there.
    async fn run<T: Send + 'static>(
        &self,
        what: &str,
        runs: impl Future<Output = T> + Send + 'static,
    ) -> T {
        let runtime = self.0.as_ref().expect("it ends only when it is dropped");
        soon(what, runtime.spawn(runs))
            .await
            .expect("it does not panic")
    }
}

impl Drop for Own {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

impl Apart {
    /// The first node of a cluster.
    async fn first() -> Apart {
        let (runtime, listener) = (Own::new(), listen(FIRST).await);
        let address = address(&listener.0);
        let node = runtime.run("the first node", Node::first(listener)).await;
        Apart {
            runtime,
            node,
            address,
        }
    }

    async fn joined(id: NodeId, first: &Node) -> Apart {
        let (listener, new) = listen(id).await;
        join(first, id, new).await;
        let disk = MemoryDisk::new();
        let store = new_store(&disk, id);
        Apart::start(listener, disk, store).await
    }

    async fn start(listener: TcpListener, disk: MemoryDisk, store: store::Store) -> Apart {
        let (runtime, address) = (Own::new(), address(&listener));
        let start = Node::start(listener, disk, store);
        let node = runtime.run("the start", start).await;
        Apart {
            runtime,
            node,
            address,
        }
    }

    /// Starts a node again on its disk, and waits until it can be relied on.
    async fn again(address: &str, disk: MemoryDisk) -> Apart {
        let listener = async {
            loop {
                if let Ok(listener) = TcpListener::bind(address).await {
                    return listener;
                }
                // sleep: nothing tells when an address is free again.
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        let listener = soon("the address", listener).await;
        let store = old_store(&disk);
        Apart::start(listener, disk, store).await
    }

    /// Ends the node between two instructions.
    fn crash(self) -> (String, MemoryDisk) {
        let disk = self.node.disk();
        drop(self.runtime);
        (self.address, disk)
    }

    /// Ends the node as its operator would.
    async fn stop(self) -> (String, MemoryDisk) {
        let Apart {
            runtime,
            node,
            address,
        } = self;
        let stop = async {
            let handed = node.replicas.hand_over(Duration::from_secs(10));
            handed.await.expect("it runs");
            node.shut_down().await
        };
        (address, runtime.run("the stop", stop).await)
    }

    fn control(&self) -> &ControlClient {
        self.node.replicas.control()
    }

    /// Waits until the node has a catalogue lease.
    async fn relies(&self) {
        let relies = async {
            while self.control().current().is_err() {
                // sleep: a lease is not watched from outside.
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        soon("a catalogue lease", relies).await;
    }

    /// Waits until the node knows that every other one has what it has.
    async fn hears_that_all_is_settled(&self) {
        let hears = async {
            let last = read::last_change(self.control().view()).expect("it can be read");
            while self.control().settled() < last {
                // sleep: what is settled is not watched from outside.
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        soon("news of the last change", hears).await;
    }

    /// Waits until the node's copy of the catalogue has the topic, whatever others have.
    async fn applies(&self, id: &str) {
        let applies = async {
            let view = self.control().view();
            let has = |_: &Option<store::Position>| {
                let topic = read::topic(view, &topic_name(id));
                topic.expect("it can be read").is_some()
            };
            let mut applied = self.control().applied();
            applied.wait_for(has).await.map(|_| ())
        };
        soon("a copy of the change", applies)
            .await
            .expect("it runs");
    }

    /// Reads a topic that is there, or is not, and answers how long it took.
    async fn looks_up(&self, id: &str) -> (bool, Duration) {
        let began = Instant::now();
        let name = topic_name(id);
        let found = async {
            loop {
                let look = |catalogue: &StateView| read::seen_topic(catalogue, &name);
                if let Ok(found) = self.control().look_up(look).await {
                    return found.is_some();
                }
            }
        };
        (soon("an answer", found).await, began.elapsed())
    }

    /// Creates a topic, and answers how long it took.
    async fn creates(&self, id: &str) -> Duration {
        let began = Instant::now();
        let created = async {
            let command = Command::CreateTopic(CreateTopic {
                name: topic_name(id),
                labels: Default::default(),
                storage_policy: None,
            });
            // Where the leader is lost, whether it was done is unknown: then it exists already.
            while self.control().propose(command.clone()).await.is_err() {}
        };
        soon("a new topic", created).await;
        began.elapsed()
    }
}

fn address(listener: &TcpListener) -> String {
    listener.local_addr().expect("it is bound").to_string()
}

/// Three nodes with leases, all of which vote in the control group; the first leads it.
async fn three() -> [Apart; 3] {
    let first = Apart::first().await;
    let second = Apart::joined(NodeId(2), &first.node).await;
    let third = Apart::joined(NodeId(3), &first.node).await;
    first.node.place_control(&[1, 2, 3], &[]).await;
    let nodes = [first, second, third];
    all_vote(&[&nodes[0].node, &nodes[1].node, &nodes[2].node]).await;
    for node in &nodes {
        node.relies().await;
    }
    nodes[0].creates("everywhere").await;
    nodes
}

#[tokio::test]
async fn the_loss_of_a_node_stalls_changes_once_and_reads_of_other_names_never() {
    let [first, second, third] = three().await;
    third.crash();
    let change = first.creates("first");
    let reads = async {
        let (found, took) = second.looks_up("everywhere").await;
        assert!(found && took < AT_ONCE, "{took:?}");
        let (found, took) = second.looks_up("nowhere").await;
        assert!(!found && took < AT_ONCE, "{took:?}");
    };
    let (stalled, ()) = tokio::join!(change, reads);
    assert!(
        stalled > Duration::from_secs(5),
        "the lost node had a lease"
    );
    assert!(stalled < ONE_LEASE, "{stalled:?}");
    let (found, took) = second.looks_up("first").await;
    assert!(found && took < AT_ONCE, "{took:?}");
    let took = second.creates("second").await;
    assert!(took < AT_ONCE, "the lost node is asleep: {took:?}");
}

#[tokio::test]
async fn what_a_lost_node_may_lack_is_not_answered_from() {
    let [first, second, third] = three().await;
    third.crash();
    let change = first.creates("first");
    let reads = async {
        second.applies("first").await;
        let began = Instant::now();
        let look = |catalogue: &StateView| read::living_topic(catalogue, &topic_name("first"));
        let resolved = soon("an answer", second.control().resolve(look)).await;
        assert!(resolved.expect("the node has a lease").is_some());
        began.elapsed()
    };
    let (_, waited) = tokio::join!(change, reads);
    assert!(
        waited > Duration::from_secs(3),
        "the lost node may resolve names: {waited:?}"
    );
}

#[tokio::test]
async fn the_loss_of_the_control_leader_stalls_no_read() {
    let [first, second, third] = three().await;
    third.creates("last").await;
    for node in [&second, &third] {
        node.hears_that_all_is_settled().await;
    }
    first.crash();
    for node in [&second, &third] {
        for id in ["last", "everywhere"] {
            let (found, took) = node.looks_up(id).await;
            assert!(found && took < AT_ONCE, "{took:?}");
        }
        assert!(node.control().current().is_ok(), "its lease goes on");
    }
    let stalled = second.creates("first").await;
    assert!(stalled < ONE_LEASE, "{stalled:?}");
    let took = third.creates("second").await;
    assert!(took < AT_ONCE, "the lost node is asleep: {took:?}");
}

#[tokio::test]
async fn a_rolling_restart_stalls_nothing() {
    let mut nodes = Vec::from(three().await);
    for round in 0..nodes.len() {
        let (address, disk) = nodes.remove(0).stop().await;
        let took = nodes[0].creates(&format!("while-away-{round}")).await;
        assert!(took < AT_ONCE, "round {round}: {took:?}");
        let (found, took) = nodes[1].looks_up(&format!("while-away-{round}")).await;
        assert!(found && took < AT_ONCE, "round {round}: {took:?}");
        let back = Apart::again(&address, disk).await;
        back.relies().await;
        let took = back.creates(&format!("back-{round}")).await;
        assert!(took < AT_ONCE, "round {round}: {took:?}");
        nodes.push(back);
    }
}

#[tokio::test]
async fn a_node_that_crashes_and_is_back_at_once_stalls_nothing() {
    let [first, second, third] = three().await;
    let (address, disk) = third.crash();
    let back = Apart::again(&address, disk).await;
    let took = second.creates("first").await;
    assert!(took < AT_ONCE, "its lease ended with its process: {took:?}");
    back.relies().await;
    let (found, _) = back.looks_up("first").await;
    assert!(found);
    drop(first);
}

//! A node to test: replicas, a listener for its peers, and a disk that outlives it.

use std::collections::BTreeSet;
use std::time::Duration;

use bytes::Bytes;
use engine::command::{Command, Proposal};
use engine::shard;
use engine::subscription::SubscriptionSettings;
use engine::table::run::referred_payload;
use model::run::RunPayload;
use model::{GroupId, Incarnation, KeyHash, NodeId, NodeName, RegionName, ShardNumber, Timestamp};
use store::{Digest, Identity, MemoryDisk, Pace, Payloads, Start, Store};
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tonic::service::Routes;

use crate::groups::{Groups, RaftService};
use crate::peer::{self, PeerAddress, Peers, ServeError};
use crate::raft::Core;
use crate::settings::Settings;

pub(super) const GROUP: GroupId = GroupId::Shard(ShardNumber(1));
const CLUSTER: &str = "test";
const PATIENCE: Duration = Duration::from_secs(20);

pub(super) struct Node {
    groups: Groups,
    peers: Peers,
    store: Store,
    disk: MemoryDisk,
    address: String,
    stop: oneshot::Sender<()>,
    serving: JoinHandle<Result<(), ServeError>>,
}

/// A node that is shut down: what is left of it.
pub(super) struct Disk {
    pub(super) id: NodeId,
    disk: MemoryDisk,
    address: String,
}

/// Waits for something that must happen.
pub(super) async fn soon<T>(what: &str, happens: impl Future<Output = T>) -> T {
    match tokio::time::timeout(PATIENCE, happens).await {
        Ok(happened) => happened,
        Err(_) => panic!("{what} did not happen within {PATIENCE:?}"),
    }
}

/// So many nodes that know each other, all of them founders of the group.
pub(super) async fn founded(count: u64) -> Vec<Node> {
    let mut nodes = Vec::new();
    for id in 1..=count {
        nodes.push(Node::new(NodeId(id)).await);
    }
    for node in &nodes {
        nodes
            .iter()
            .for_each(|other| node.learn(other.id(), &other.address()));
    }
    let voters: BTreeSet<NodeId> = nodes.iter().map(Node::id).collect();
    let founder = nodes[0].core_opened().await;
    founder.found(voters).await.expect("it is empty");
    nodes
}

/// The node that leads the group, once all of these agree on one of them.
pub(super) async fn leader_of(nodes: &[Node]) -> &Node {
    let agreed = async {
        loop {
            let leaders: Vec<_> = nodes.iter().map(Node::leader).collect();
            let first = leaders[0];
            let leader = nodes.iter().find(|node| Some(node.id()) == first);
            if let Some(leader) = leader.filter(|_| leaders.iter().all(|one| *one == first)) {
                return leader;
            }
            // sleep: nothing tells when all agree, or when a leader takes writes.
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    soon("an agreement on a leader", agreed).await
}

/// Publishes data through a leader, again while it can't, and answers the entry's index.
pub(super) async fn commit(core: &Core, data: &str) -> u64 {
    committed(core, publish(data)).await
}

async fn committed(core: &Core, command: shard::Command) -> u64 {
    let committed = async {
        loop {
            let proposal = Proposal {
                at: Timestamp(1),
                commands: vec![Command::Shard(command.clone())],
            };
            let pending = core.propose(None, proposal).await;
            match pending.await {
                Ok(_) => return core.applied().borrow().expect("it was applied").index,
                // A leader that is new refuses until a majority has heard of it.
                Err(refused) => assert!(!refused.unknown, "the leader lost its place"),
            }
            // sleep: nothing tells when all agree, or when a leader takes writes.
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    soon("a commit", committed).await
}

/// Attaches a subscription, so that messages are kept, and answers the entry's index.
pub(super) async fn attach(core: &Core) -> u64 {
    let attach = shard::Attach {
        topic: Incarnation(1),
        subscription: Incarnation(2),
        version: 1,
        settings: SubscriptionSettings {
            ordered: false,
            exactly_once: false,
            ack_deadline: Duration::from_secs(10),
            filter: String::new(),
            dead_letter: None,
            retry: None,
        },
    };
    committed(core, shard::Command::Attach(attach)).await
}

fn publish(data: &str) -> shard::Command {
    let payload = RunPayload::new(&[Bytes::copy_from_slice(data.as_bytes())]);
    shard::Command::Publish(shard::Publish {
        topic: Incarnation(1),
        strand: KeyHash([0; 16]),
        keyed: false,
        opening: None,
        count: 1,
        bytes: data.len() as u64,
        payload,
    })
}

/// The data in a node's log, without repetitions in a row.
pub(super) fn published(node: &Node) -> Vec<String> {
    let entries = node
        .store
        .read_log(GROUP, 0..u64::MAX, usize::MAX, Payloads::Joined);
    let entries = entries.expect("the disk can be read");
    let payloads = entries.into_iter().flat_map(|entry| entry.payloads);
    let data = payloads.map(|payload| String::from_utf8(payload.message(0).to_vec()));
    data.map(|data| data.expect("text was published")).collect()
}

impl Node {
    pub(super) async fn new(id: NodeId) -> Node {
        Node::of_cluster(CLUSTER, id).await
    }

    pub(super) async fn of_cluster(cluster: &str, id: NodeId) -> Node {
        let disk = MemoryDisk::new();
        let start = Start::New(Identity {
            cluster: cluster.to_owned(),
            node: id,
            called: None,
        });
        Node::on(disk, start, "127.0.0.1:0").await
    }

    async fn on(disk: MemoryDisk, start: Start, address: &str) -> Node {
        let store = Store::memory(&disk, store::Settings::new("memory", start), Pace::AtOnce);
        let store = store.expect("nobody else has the disk");
        let Identity { cluster, node, .. } = store.identity().clone();
        let region = RegionName::parse("north").expect("a valid name");
        let peers = Peers::new(peer::Settings::plain(cluster, node, region));
        let groups = Groups::new(Settings::of_zone(node), store.clone(), peers.clone());
        let listener = TcpListener::bind(address)
            .await
            .expect("the address is free");
        let address = listener.local_addr().expect("it is bound").to_string();
        let routes = Routes::new(RaftService::server(groups.clone()));
        let (stop, stopped) = oneshot::channel();
        let serving = peer::serve(
            listener,
            routes,
            Routes::default(),
            peers.clone(),
            async move {
                let _ = stopped.await;
            },
        );
        Node {
            groups,
            peers,
            store,
            disk,
            address,
            stop,
            serving: tokio::spawn(serving),
        }
    }

    /// Ends the node as `kill -9` does.
    pub(super) async fn kill(self) -> Disk {
        self.disk.end_process();
        self.shut_down().await
    }

    pub(super) async fn shut_down(self) -> Disk {
        let id = self.id();
        soon("the shutdown", self.groups.shutdown()).await;
        drop(self.stop);
        let served = soon("the end of the listener", self.serving).await;
        served
            .expect("it does not panic")
            .expect("it does not fail");
        Disk {
            id,
            disk: self.disk,
            address: self.address,
        }
    }

    pub(super) fn id(&self) -> NodeId {
        self.groups.node()
    }

    pub(super) fn address(&self) -> String {
        self.address.clone()
    }

    pub(super) fn groups(&self) -> &Groups {
        &self.groups
    }

    pub(super) fn learn(&self, node: NodeId, address: &str) {
        self.peers.learn(node, address_of(address));
    }

    pub(super) fn dials(&self, node: NodeId) -> u64 {
        self.peers.dials(node)
    }

    /// The node's replica, which someone has opened.
    pub(super) fn core(&self) -> Core {
        self.groups.get(GROUP).expect("the group is open here")
    }

    pub(super) async fn core_opened(&self) -> Core {
        self.groups.open(GROUP).await.expect("the disk can be read")
    }

    pub(super) fn store(&self) -> Store {
        self.store.clone()
    }

    /// Bytes on the node's disk.
    pub(super) fn used(&self) -> u64 {
        self.disk.used()
    }

    /// The node's state as a number.
    pub(super) fn digest(&self) -> Digest {
        let digest = self.store.digest(GROUP, referred_payload);
        let digest = digest.expect("the disk can be read");
        digest.expect("something is applied")
    }

    /// Through which entry the node has cut its log.
    pub(super) fn purged(&self) -> Option<u64> {
        let bounds = self.store.log_bounds(GROUP);
        let purged = bounds.expect("the disk can be read").purged;
        purged.map(|at| at.index)
    }

    /// One step of cutting the log.
    pub(super) async fn cut_log(&self, lag_max: u64) {
        self.store.flush_state().expect("the disk is sound");
        let cut = self.core().cut_log(lag_max).await;
        cut.expect("the replica runs");
    }

    /// Cuts the log through an entry, whatever others lack.
    pub(super) async fn cut_log_through(&self, index: u64) {
        while self.purged() < Some(index) {
            self.cut_log(0).await;
            // sleep: a cut takes effect later, and nothing tells of it.
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    fn leader(&self) -> Option<NodeId> {
        self.groups.get(GROUP).and_then(|core| core.leader())
    }

    /// The term of this leader.
    pub(super) fn term(&self) -> u64 {
        let applied = *self.core().applied().borrow();
        applied.expect("something is applied").term
    }

    pub(super) fn applied(&self) -> u64 {
        let applied = *self.core().applied().borrow();
        applied.map_or(0, |at| at.index)
    }

    /// Waits until the replica has applied an entry; it may have to be opened first.
    pub(super) async fn applies(&self, index: u64) {
        let mut opened = self.groups.watch();
        let opened = opened.wait_for(|cores| cores.contains_key(&GROUP)).await;
        drop(opened.expect("the node runs"));
        let mut applied = self.core().applied();
        let applied = applied
            .wait_for(|at| at.is_some_and(|at| at.index >= index))
            .await;
        drop(applied.expect("the replica runs"));
    }

    /// A read that waits for the answer of a leader.
    pub(super) async fn reads(&self) {
        while self.core().read().await.is_err() {
            // sleep: nothing tells when all agree, or when a leader takes writes.
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

impl Disk {
    /// Bytes on it.
    pub(super) fn used(&self) -> u64 {
        self.disk.used()
    }

    /// Starts the node again, where it was before.
    pub(super) async fn start(self, others: &[Node]) -> Node {
        let node = Node::on(self.disk, Start::Existing, &self.address).await;
        others
            .iter()
            .for_each(|other| node.learn(other.id(), &other.address()));
        node.core_opened().await;
        node
    }
}

fn address_of(address: &str) -> PeerAddress {
    PeerAddress {
        name: NodeName::parse("some-node").expect("a valid name"),
        address: address.to_owned(),
        region: RegionName::parse("north").expect("a valid name"),
    }
}

//! Nodes of a cluster, and short words for what clients do.

use std::collections::BTreeSet;
use std::time::Duration;

use bytes::Bytes;
use engine::control::{
    Command, CreateSubscription, CreateTopic, Found, NewNode, Place, Placement, Reply, read,
};
use model::run::RunPayload;
use model::{
    ClusterSecret, GroupId, MessageId, NodeId, NodeName, RegionName, ShardNumber, SubscriptionName,
    TopicName, ZoneName,
};
use replica::peer;
use replica::{Clock, Peers, Replicas, Settings, Timing};
use router::{PublishError, Router};
use store::{Identity, MemoryDisk, Pace, Start, Store};
use tokio::net::TcpListener;
use tokio::sync::mpsc;

pub(crate) const FIRST: NodeId = NodeId(1);
const CLUSTER: &str = "test";
const SECRET: ClusterSecret = ClusterSecret([5; 16]);

/// What no test waits longer for.
const PATIENCE: Duration = Duration::from_secs(30);

/// Waits for something that must happen.
pub(crate) async fn soon<T>(what: &str, happens: impl Future<Output = T>) -> T {
    match tokio::time::timeout(PATIENCE, happens).await {
        Ok(happened) => happened,
        Err(_) => panic!("{what} did not happen within {PATIENCE:?}"),
    }
}

/// A node at work.
pub(crate) struct Node {
    pub(crate) replicas: Replicas,
    pub(crate) router: Router,
}

/// A cluster of so many nodes, all groups on the first one: two shards for topics as they are made
/// here, and a third for topics that must not leave their region.
pub(crate) async fn cluster(count: u64) -> Vec<Node> {
    let mut nodes = vec![Node::first().await];
    for id in 2..=count {
        let node = Node::joined(NodeId(id), &nodes[0]).await;
        nodes.push(node);
    }
    let everyone: Vec<u64> = (1..=count).collect();
    nodes[0].place(GroupId::Control, &everyone).await;
    for node in &nodes {
        soon("the catalogue", node.replicas.caught_up())
            .await
            .expect("it runs");
    }
    nodes
}

impl Node {
    async fn first() -> Node {
        let (listener, new) = listen(FIRST).await;
        let store = new_store(FIRST);
        let found = Found {
            secret: SECRET,
            cluster: CLUSTER.to_owned(),
            node: new,
            shards_per_region: 2,
            registries: 1,
        };
        let founded = Replicas::found(Settings::of_zone(FIRST), &store, Clock::machine(), found);
        soon("the founding", founded)
            .await
            .expect("the disk is empty");
        Node::start(listener, store).await
    }

    async fn joined(id: NodeId, first: &Node) -> Node {
        let (listener, new) = listen(id).await;
        let joined = first.change(Command::Join(new)).await;
        assert_eq!(joined, Reply::Joined(id));
        Node::start(listener, new_store(id)).await
    }

    async fn start(listener: TcpListener, store: Store) -> Node {
        let node = store.identity().node;
        let peers = Peers::new(peer::Settings::plain(CLUSTER.to_owned(), node, region()));
        let (forwards, _) = mpsc::channel(1);
        let settings = Settings {
            // Leaders change here where a test wants it, and not because the machine is busy.
            within: Timing {
                heartbeat: Duration::from_millis(370),
                lease: Duration::from_secs(2),
                wait_min: Duration::from_secs(1),
            },
            ..Settings::of_zone(node)
        };
        let clock = Clock::machine();
        let replicas = Replicas::start_among(peers.clone(), settings, store, clock, forwards);
        let replicas = soon("the start", replicas)
            .await
            .expect("the disk is whole");
        let (routes, open) = (replicas.routes(), replicas.open_routes());
        let forever = std::future::pending();
        tokio::spawn(peer::serve(listener, routes, open, peers, forever));
        let (control, shards) = (replicas.control().clone(), replicas.shards().clone());
        let sessions = replicas.sessions().clone();
        let router = Router::new(node, SECRET, control, shards, sessions);
        Node { replicas, router }
    }

    /// Wants a group's voters on these nodes, and waits until they are there.
    pub(crate) async fn place(&self, group: GroupId, voters: &[u64]) {
        let voters: BTreeSet<NodeId> = voters.iter().copied().map(NodeId).collect();
        let present = read::placement(self.router.control().view(), group);
        let present = present.expect("it can be read").expect("it has a place");
        let wanted = Placement {
            voters: voters.clone(),
            learners: BTreeSet::new(),
            ..present
        };
        let placed = self.change(Command::Place(Place(vec![wanted]))).await;
        assert_eq!(placed, Reply::Done);
        // A node that is no voter any more hears nothing more of the group.
        let there = async {
            while self.replicas.voters(group) != [voters.clone()] {
                // sleep: the members of a group are not watched from outside.
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        soon("the voters", there).await;
    }

    pub(crate) async fn change(&self, command: Command) -> Reply {
        let changed = self.router.control().propose(command);
        soon("a change", changed).await.expect("the group is well")
    }

    pub(crate) async fn topic(&self, id: &str) -> TopicName {
        let name = topic_name(id);
        let labels = Default::default();
        let create = CreateTopic {
            name: name.clone(),
            labels,
            storage_policy: None,
        };
        let reply = self.change(Command::CreateTopic(create)).await;
        assert!(matches!(reply, Reply::Topic(_)), "{reply:?}");
        name
    }

    /// Creates an ordered subscription.
    pub(crate) async fn subscription(&self, id: &str, topic: &TopicName) -> SubscriptionName {
        self.ordered(id, topic, false).await
    }

    /// Creates an ordered subscription, exactly-once or not, with an ack deadline of a minute.
    pub(crate) async fn ordered(
        &self,
        id: &str,
        topic: &TopicName,
        exactly_once: bool,
    ) -> SubscriptionName {
        let name = format!("projects/test-project/subscriptions/{id}");
        let name = SubscriptionName::parse(&name).expect("a valid name");
        let create = CreateSubscription {
            name: Some(name.clone()),
            topic: topic.clone(),
            labels: Default::default(),
            ordered: true,
            exactly_once,
            ack_deadline: Duration::from_secs(60),
            filter: String::new(),
            dead_letter: None,
            retry: None,
            message_retention: model::limits::MESSAGE_RETENTION_DEFAULT,
            expiration_ttl: None,
        };
        let reply = self.change(Command::CreateSubscription(create)).await;
        assert!(matches!(reply, Reply::Subscription(_)), "{reply:?}");
        name
    }

    /// Waits until this node's catalogue has the subscription.
    pub(crate) async fn sees(&self, subscription: &SubscriptionName) {
        let sees = async {
            while self.router.subscription(subscription).await.is_err() {
                // sleep: the catalogue's rows are not watched one by one.
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        soon("the subscription", sees).await;
    }

    /// Publishes one message under a key, or none.
    pub(crate) async fn publish(
        &self,
        topic: &TopicName,
        key: &str,
        data: &str,
    ) -> Result<MessageId, PublishError> {
        let payload = RunPayload::new(&[message(data)]);
        let published = self.router.publish(topic, key, payload, None);
        soon("a publish", published).await
    }
}

/// An encoded message: field 1, length-delimited, of fewer than 128 bytes.
pub(crate) fn message(data: &str) -> Bytes {
    let length = u8::try_from(data.len()).expect("short data");
    assert!(length < 128, "the length must fit into one byte");
    [&[0x0a, length], data.as_bytes()].concat().into()
}

/// What [`message`] was made of.
pub(crate) fn data(message: &Bytes) -> String {
    String::from_utf8(message[2..].to_vec()).expect("it was text")
}

pub(crate) fn shard(number: u16) -> GroupId {
    GroupId::Shard(ShardNumber(number))
}

pub(crate) fn region() -> RegionName {
    RegionName::parse("north").expect("a valid name")
}

fn topic_name(id: &str) -> TopicName {
    TopicName::parse(&format!("projects/test-project/topics/{id}")).expect("a valid name")
}

fn new_store(node: NodeId) -> Store {
    let cluster = CLUSTER.to_owned();
    let start = Start::New(Identity {
        cluster,
        node,
        called: None,
    });
    let settings = store::Settings::new("memory", start);
    let store = Store::memory(&MemoryDisk::new(), settings, Pace::AtOnce);
    store.expect("nobody else has the disk")
}

async fn listen(id: NodeId) -> (TcpListener, NewNode) {
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

//! Calls and sessions of a node that has no replica of the shard, over TCP.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use engine::dispatch::Ended;
use model::{NodeId, NodeName, RegionName, ShardNumber, Term};
use replica::peer::{self, PeerAddress, Peers};
use replica::shard::{Links, PublishError};
use replica::{Network, ShardClient, Shards, Unavailable};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::Instant;

use crate::node::{Disk, NODE, Node, publish, run, soon};
use crate::puller::{Puller, ack_ids, messages};

const OTHER: NodeId = NodeId(2);
const SHARD: ShardNumber = ShardNumber(1);

/// How other nodes reach a node: its listener, behind a wire that can be cut.
struct Door {
    node: SocketAddr,
    address: SocketAddr,
    wire: JoinHandle<()>,
}

impl Door {
    async fn open(node: &Node) -> Door {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("it is bound");
        let (routes, peers) = (node.replicas.routes(), peers(NODE));
        let open = node.replicas.open_routes();
        tokio::spawn(peer::serve(
            listener,
            routes,
            open,
            peers,
            std::future::pending(),
        ));
        Door::before(address, TcpListener::bind("127.0.0.1:0").await)
    }

    fn before(node: SocketAddr, listener: io::Result<TcpListener>) -> Door {
        let listener = listener.expect("a free port");
        let address = listener.local_addr().expect("it is bound");
        let wire = tokio::spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((mut near, _)) = listener.accept().await {
                connections.spawn(async move {
                    let mut far = TcpStream::connect(node).await?;
                    tokio::io::copy_bidirectional(&mut near, &mut far).await
                });
            }
        });
        Door {
            node,
            address,
            wire,
        }
    }

    /// Breaks all connections and refuses new ones.
    async fn cut(&mut self) {
        self.wire.abort();
        let _ = (&mut self.wire).await;
    }

    /// Lets new connections through again.
    async fn mend(&mut self) {
        let listener = TcpListener::bind(self.address).await;
        *self = Door::before(self.node, listener);
    }
}

/// What a second node has, which keeps no shard: the way to those of the first.
fn elsewhere(door: &Door) -> ShardClient {
    let peers = peers(OTHER);
    let address = PeerAddress {
        name: NodeName::parse("first").expect("a valid name"),
        address: door.address.to_string(),
        region: region(),
    };
    peers.learn(NODE, address);
    let shards = Shards::new(Links::new(peers, 1));
    shards.place([(SHARD, vec![NODE])]);
    shards.client(SHARD).expect("it was placed")
}

fn peers(node: NodeId) -> Peers {
    Peers::new(peer::Settings {
        network: Network::sockets(),
        cluster: "test".to_owned(),
        node,
        region: region(),
        wan_one_way: None,
        tls: None,
    })
}

fn region() -> RegionName {
    RegionName::parse("here").expect("a valid name")
}

#[tokio::test]
async fn a_node_without_a_replica_publishes_pulls_and_acknowledges() {
    let node = Node::founded(Disk::memory(), 1).await;
    let topic = node.topic("news").await;
    let subscription = node.subscription("reader", &topic).await;
    let door = Door::open(&node).await;
    let shard = elsewhere(&door);
    let mut puller = Puller::open(&shard, &subscription, 1).await;
    let mut ids = Vec::new();
    for data in ["1", "2", "3"] {
        let published = publish(&shard, topic.incarnation, "key", data);
        ids.push(soon("a publish", published).await.expect("there is a way"));
    }
    assert!(ids.is_sorted());
    let deliveries = puller.take_messages(3).await;
    let expected: Vec<_> = ["1", "2", "3"].map(crate::node::message).into();
    assert_eq!(messages(&deliveries), expected);
    let replies = puller.acknowledge(ack_ids(&deliveries)).await;
    assert_eq!(replies.len(), 3);
    // A redelivery to a new session would show that an ack did not arrive.
    puller.close().await;
    let mut later = Puller::open(&shard, &subscription, 2).await;
    let published = publish(&shard, topic.incarnation, "key", "4");
    soon("a publish", published).await.expect("there is a way");
    let next = later.take_messages(1).await;
    assert_eq!(messages(&next), [crate::node::message("4")]);
}

#[tokio::test]
async fn many_callers_share_a_link_and_each_gets_its_own_answer() {
    let node = Node::founded(Disk::memory(), 1).await;
    let topic = node.topic("news").await;
    let subscription = node.subscription("reader", &topic).await;
    let door = Door::open(&node).await;
    let shard = elsewhere(&door);
    let publishers: Vec<_> = (0..500)
        .map(|number| {
            let (shard, topic) = (shard.clone(), topic.incarnation);
            let data = number.to_string();
            tokio::spawn(async move { (publish(&shard, topic, &data, &data).await, data) })
        })
        .collect();
    let mut published = Vec::new();
    for publisher in publishers {
        let (id, data) = soon("a publish", publisher).await.expect("no panic");
        published.push((id.expect("there is a way"), crate::node::message(&data)));
    }
    let mut puller = Puller::open(&shard, &subscription, 1).await;
    let deliveries = puller.take_messages(published.len()).await;
    let mut delivered: Vec<_> = deliveries
        .iter()
        .map(|delivery| (delivery.ack.message, delivery.message.clone()))
        .collect();
    delivered.sort();
    published.sort();
    assert_eq!(
        delivered, published,
        "an id names the message it was given for"
    );
}

#[tokio::test]
async fn a_broken_link_ends_sessions_and_the_next_call_finds_a_new_one() {
    let node = Node::founded(Disk::memory(), 1).await;
    let topic = node.topic("news").await;
    let subscription = node.subscription("reader", &topic).await;
    let mut door = Door::open(&node).await;
    let shard = elsewhere(&door);
    let mut puller = Puller::open(&shard, &subscription, 1).await;
    soon("a publish", publish(&shard, topic.incarnation, "key", "1"))
        .await
        .expect("there is a way");
    let unacked = puller.take_messages(1).await;
    door.cut().await;
    assert_eq!(puller.ended().await, Ended::Reopen);
    let waiting = {
        let (shard, topic) = (shard.clone(), topic.incarnation);
        tokio::spawn(async move { publish(&shard, topic, "key", "2").await })
    };
    door.mend().await;
    let second = soon("a publish", waiting).await.expect("no panic");
    second.expect("it waited for the way");
    // The session of the broken link is closed: what it held goes to the next one, in order.
    let mut next = Puller::open(&shard, &subscription, 2).await;
    let deliveries = next.take_messages(2).await;
    assert_eq!(deliveries[0].ack.message, unacked[0].ack.message);
    assert_eq!(
        messages(&deliveries),
        [crate::node::message("1"), crate::node::message("2")]
    );
    assert!(
        deliveries
            .iter()
            .all(|one| one.ack.generation.term > Term(0))
    );
}

#[tokio::test]
async fn a_call_without_a_way_is_given_up_before_its_deadline() {
    let node = Node::founded(Disk::memory(), 1).await;
    let topic = node.topic("news").await;
    let mut door = Door::open(&node).await;
    let shard = elsewhere(&door);
    door.cut().await;
    let deadline = Instant::now() + Duration::from_secs(1);
    let strand = crate::node::SECRET.key_hash(topic.incarnation, "key");
    let published = shard.publish(topic.incarnation, strand, true, run(&["1"]), Some(deadline));
    let answer = soon("an answer", published).await;
    assert!(
        matches!(answer, Err(PublishError::Unavailable(_))),
        "{answer:?}"
    );
    assert!(Instant::now() < deadline);
}

#[tokio::test]
async fn a_node_that_accepts_and_says_nothing_holds_no_call_beyond_its_deadline() {
    // Connections are accepted by the system, and nobody reads them.
    let silent = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let node = silent.local_addr().expect("it is bound");
    let door = Door::before(node, TcpListener::bind("127.0.0.1:0").await);
    let shard = elsewhere(&door);
    let deadline = Instant::now() + Duration::from_secs(1);
    let acknowledged = shard.acknowledge(model::Incarnation(1), Vec::new(), Some(deadline));
    let answer = soon("an answer", acknowledged).await;
    assert!(matches!(answer, Err(Unavailable { .. })), "{answer:?}");
    assert!(Instant::now() < deadline);
}

#[tokio::test]
async fn a_publish_that_nobody_waits_for_is_not_stored() {
    let node = Node::founded(Disk::memory(), 1).await;
    let topic = node.topic("news").await;
    let subscription = node.subscription("reader", &topic).await;
    let door = Door::open(&node).await;
    let shard = elsewhere(&door);
    let mut puller = Puller::open(&shard, &subscription, 1).await;
    // Polled once: on its way, and given up there.
    let abandoned = publish(&shard, topic.incarnation, "key", "abandoned");
    let abandoned = tokio::time::timeout(Duration::ZERO, abandoned).await;
    assert!(abandoned.is_err(), "a link takes longer than no time");
    let published = publish(&shard, topic.incarnation, "key", "retried");
    soon("a publish", published).await.expect("there is a way");
    let deliveries = puller.take_messages(1).await;
    assert_eq!(messages(&deliveries), [crate::node::message("retried")]);
}

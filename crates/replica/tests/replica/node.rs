//! A node to test: its disk, its replicas, and short words for what clients do.

use std::time::Duration;

use bytes::Bytes;
use engine::control::{
    Command, CreateSubscription, CreateTopic, DeleteSubscription, Found, NewNode, Reply,
    Subscription, Topic,
};
use model::run::RunPayload;
use model::{
    ClusterSecret, GroupId, Incarnation, MessageId, NodeId, NodeName, RegionName, ShardNumber,
    SubscriptionName, TopicName, ZoneName,
};
use replica::shard::{ForwardRequest, PublishError};
use replica::{Clock, Replicas, Settings, ShardClient, StartError};
use store::{Identity, MemoryDisk, Pace, Start, Store};
use tempfile::TempDir;
use tokio::sync::mpsc;

pub(crate) const NODE: NodeId = NodeId(1);
pub(crate) const SECRET: ClusterSecret = ClusterSecret([5; 16]);
const FORWARDS_WAITING_MAX: usize = 16;

/// What no test waits longer for.
const PATIENCE: Duration = Duration::from_secs(60);

/// Waits for something that must happen.
pub(crate) async fn soon<T>(what: &str, happens: impl Future<Output = T>) -> T {
    match tokio::time::timeout(PATIENCE, happens).await {
        Ok(happened) => happened,
        Err(_) => panic!("{what} did not happen within {PATIENCE:?}"),
    }
}

/// Where a node keeps its data.
pub(crate) enum Disk {
    Memory(MemoryDisk),
    Folder(TempDir),
}

impl Disk {
    pub(crate) fn memory() -> Self {
        Disk::Memory(MemoryDisk::new())
    }

    pub(crate) fn folder() -> Self {
        Disk::Folder(TempDir::new().expect("the machine has room for a folder"))
    }

    /// The disk of a node that was never started.
    pub(crate) fn new_store(&self) -> Store {
        let identity = Identity {
            cluster: "test".to_owned(),
            node: NODE,
            called: None,
        };
        self.open(Start::New(identity))
    }

    pub(crate) fn store(&self) -> Store {
        self.open(Start::Existing)
    }

    fn open(&self, start: Start) -> Store {
        let opened = match self {
            Disk::Memory(disk) => {
                Store::memory(disk, store::Settings::new("memory", start), Pace::AtOnce)
            }
            Disk::Folder(folder) => Store::open(store::Settings::new(folder.path(), start)),
        };
        opened.expect("nobody else has the disk")
    }
}

pub(crate) fn settings() -> Settings {
    Settings {
        cut_log_every: Duration::from_millis(20),
        drain_max: Duration::from_secs(2),
        ..Settings::alone(NODE)
    }
}

/// A started node of a cluster of one.
pub(crate) struct Node {
    pub(crate) disk: Disk,
    pub(crate) store: Store,
    pub(crate) replicas: Replicas,
    pub(crate) forwards: mpsc::Receiver<ForwardRequest>,
}

impl Node {
    /// Founds a cluster with so many shards on an empty disk, and starts it.
    pub(crate) async fn founded(disk: Disk, shards: u16) -> Node {
        let store = disk.new_store();
        found(&store, shards).await.expect("the disk is empty");
        Node::started(disk, store).await
    }

    /// Starts the node of a disk.
    pub(crate) async fn started(disk: Disk, store: Store) -> Node {
        let (sender, forwards) = mpsc::channel(FORWARDS_WAITING_MAX);
        let clock = Clock::machine();
        let replicas = Replicas::start(settings(), store.clone(), clock, sender);
        let replicas = soon("the start", replicas).await.expect("it was founded");
        for shard in replicas.shards().all().values() {
            soon("a leadership", shard.serving())
                .await
                .expect("the node runs");
        }
        Node {
            disk,
            store,
            replicas,
            forwards,
        }
    }

    /// Shuts the node down and starts it again.
    pub(crate) async fn restarted(self) -> Node {
        let disk = self.shut_down().await;
        let store = disk.store();
        Node::started(disk, store).await
    }

    pub(crate) async fn shut_down(self) -> Disk {
        soon("the shutdown", self.replicas.shutdown()).await;
        self.disk
    }

    pub(crate) fn shard(&self) -> ShardClient {
        let shards = self.replicas.shards();
        shards.client(ShardNumber(1)).expect("it was founded")
    }

    pub(crate) async fn change(&self, command: Command) -> Reply {
        let changed = self.replicas.control().propose(command);
        soon("a change", changed).await.expect("this node leads")
    }

    pub(crate) async fn topic(&self, id: &str) -> Topic {
        let command = Command::CreateTopic(CreateTopic {
            name: topic_name(id),
            labels: Default::default(),
            storage_policy: None,
        });
        match self.change(command).await {
            Reply::Topic(topic) => *topic,
            reply => panic!("no topic: {reply:?}"),
        }
    }

    /// Creates an ordered subscription.
    pub(crate) async fn subscription(&self, id: &str, topic: &Topic) -> Subscription {
        self.subscription_as(id, topic, |_| {}).await
    }

    pub(crate) async fn subscription_as(
        &self,
        id: &str,
        topic: &Topic,
        wish: impl FnOnce(&mut CreateSubscription),
    ) -> Subscription {
        let mut create = create_subscription(id, topic);
        wish(&mut create);
        match self.change(Command::CreateSubscription(create)).await {
            Reply::Subscription(subscription) => *subscription,
            reply => panic!("no subscription: {reply:?}"),
        }
    }

    pub(crate) async fn delete_subscription(&self, id: &str) {
        let name = subscription_name(id);
        let command = Command::DeleteSubscription(DeleteSubscription { name });
        assert_eq!(self.change(command).await, Reply::Done);
    }

    /// Publishes one message under a key.
    pub(crate) async fn publish(&self, topic: &Topic, key: &str, data: &str) -> MessageId {
        let shard = self.shard();
        let published = publish(&shard, topic.incarnation, key, data);
        soon("a publish", published).await.expect("the node serves")
    }

    /// The index of the shard's last log entry.
    pub(crate) fn log_end(&self) -> u64 {
        let bounds = self.store.log_bounds(GroupId::Shard(ShardNumber(1)));
        let last = bounds.expect("the disk can be read").last;
        last.map_or(0, |last| last.index)
    }
}

/// The wish for an ordered subscription.
pub(crate) fn create_subscription(id: &str, topic: &Topic) -> CreateSubscription {
    CreateSubscription {
        name: Some(subscription_name(id)),
        topic: topic.name.clone(),
        labels: Default::default(),
        ordered: true,
        exactly_once: false,
        ack_deadline: Duration::from_secs(60),
        filter: String::new(),
        dead_letter: None,
        retry: None,
        message_retention: model::limits::MESSAGE_RETENTION_DEFAULT,
        expiration_ttl: None,
    }
}

pub(crate) async fn found(store: &Store, shards: u16) -> Result<(), StartError> {
    let found = Found {
        secret: SECRET,
        cluster: "memory".to_owned(),
        node: NewNode {
            name: NodeName::parse("one").unwrap(),
            region: RegionName::parse("here").unwrap(),
            zone: ZoneName::parse("a").unwrap(),
            peer_address: String::new(),
            client_address: String::new(),
            join: [1; 16],
        },
        shards_per_region: shards,
        registries: 1,
    };
    let founded = Replicas::found(settings(), store, Clock::machine(), found);
    soon("the founding", founded).await
}

pub(crate) async fn publish(
    shard: &ShardClient,
    topic: Incarnation,
    key: &str,
    data: &str,
) -> Result<MessageId, PublishError> {
    let strand = SECRET.key_hash(topic, key);
    let keyed = !key.is_empty();
    shard
        .publish(topic, strand, keyed, run(&[data]), None)
        .await
}

/// A run of messages with these data.
pub(crate) fn run(data: &[&str]) -> RunPayload {
    let messages: Vec<Bytes> = data.iter().map(|data| message(data)).collect();
    RunPayload::new(&messages)
}

/// An encoded message: field 1, length-delimited, of fewer than 128 bytes.
pub(crate) fn message(data: &str) -> Bytes {
    let length = u8::try_from(data.len()).expect("short data");
    assert!(length < 128, "the length must fit into one byte");
    [&[0x0a, length], data.as_bytes()].concat().into()
}

pub(crate) fn topic_name(id: &str) -> TopicName {
    TopicName::parse(&format!("projects/test-project/topics/{id}")).expect("a valid name")
}

pub(crate) fn subscription_name(id: &str) -> SubscriptionName {
    let name = format!("projects/test-project/subscriptions/{id}");
    SubscriptionName::parse(&name).expect("a valid name")
}

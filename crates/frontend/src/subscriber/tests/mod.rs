//! Calls that wait long, on virtual time: everything below them is the real thing, with its disk in
//! memory and no socket in between.

mod pull_wait;
mod stream_end;

use std::time::Duration;

use engine::control::{Found, NewNode};
use model::{ClusterSecret, NodeId, NodeName, RegionName, ZoneName};
use proto::pubsub::publisher_client::PublisherClient;
use proto::pubsub::publisher_server::PublisherServer;
use proto::pubsub::subscriber_client::SubscriberClient;
use proto::pubsub::subscriber_server::SubscriberServer;
use proto::pubsub::{PublishRequest, PubsubMessage, Subscription, Topic};
use replica::{Clock, Replicas, Settings};
use router::Router;
use store::{Identity, MemoryDisk, Pace, Start, Store};
use tokio::sync::mpsc;

use super::SubscriberService;
use crate::ShutdownTrigger;
use crate::publisher::PublisherService;

const NODE: NodeId = NodeId(1);
const SECRET: ClusterSecret = ClusterSecret([3; 16]);
const TOPIC: &str = "projects/tests/topics/orders";
const SUBSCRIPTION: &str = "projects/tests/subscriptions/shipping";
/// How long after its moment anything may happen: on virtual time work takes none.
const AT_ONCE: Duration = Duration::from_millis(100);

/// Both services of a node, with a topic and a subscription.
struct Service {
    subscriber: SubscriberClient<SubscriberServer<SubscriberService>>,
    publisher: PublisherClient<PublisherServer<PublisherService>>,
    _replicas: Replicas,
    _shutdown: ShutdownTrigger,
}

impl Service {
    async fn start() -> Service {
        let replicas = replicas().await;
        let (control, shards) = (replicas.control().clone(), replicas.shards().clone());
        let router = Router::new(NODE, SECRET, control, shards, replicas.sessions().clone());
        let (trigger, shutdown) = crate::shutdown();
        let subscriber = SubscriberService::new(router.clone(), shutdown);
        let mut service = Service {
            subscriber: SubscriberClient::new(SubscriberServer::new(subscriber)),
            publisher: PublisherClient::new(PublisherServer::new(PublisherService::new(router))),
            _replicas: replicas,
            _shutdown: trigger,
        };
        service.create().await;
        service
    }

    async fn create(&mut self) {
        let topic = Topic {
            name: TOPIC.to_owned(),
            ..Topic::default()
        };
        let created = self.publisher.create_topic(topic).await;
        created.expect("the topic is created");
        let subscription = Subscription {
            name: SUBSCRIPTION.to_owned(),
            topic: TOPIC.to_owned(),
            ..Subscription::default()
        };
        let created = self.subscriber.create_subscription(subscription).await;
        created.expect("the subscription is created");
    }

    async fn publish(&mut self, text: &str) {
        let message = PubsubMessage {
            data: text.to_owned().into(),
            ..PubsubMessage::default()
        };
        let request = PublishRequest {
            topic: TOPIC.to_owned(),
            messages: proto::wire::encode_all(&[message]),
        };
        let published = self.publisher.publish(request).await;
        published.expect("it is published");
    }
}

/// The replicas of a new cluster of one node.
async fn replicas() -> Replicas {
    let identity = Identity {
        cluster: "memory".to_owned(),
        node: NODE,
        called: None,
    };
    let settings = store::Settings::new("memory", Start::New(identity));
    let store = Store::memory(&MemoryDisk::new(), settings, Pace::AtOnce);
    let store = store.expect("the disk is new");
    let clock = Clock::starting_at(model::Timestamp(1_000_000_000));
    let found = Found {
        secret: SECRET,
        cluster: "memory".to_owned(),
        node: NewNode {
            name: NodeName::parse("one").expect("a valid name"),
            region: RegionName::parse("here").expect("a valid name"),
            zone: ZoneName::parse("a").expect("a valid name"),
            peer_address: String::new(),
            client_address: String::new(),
            join: [1; 16],
        },
        shards_per_region: 2,
        registries: 1,
    };
    let settings = Settings::alone(NODE);
    let founded = Replicas::found(settings, &store, clock, found).await;
    founded.expect("the disk is empty");
    let (forwards, _) = mpsc::channel(1);
    let replicas = Replicas::start(settings, store, clock, forwards).await;
    let replicas = replicas.expect("it was founded");
    for shard in replicas.shards().all().values() {
        shard.serving().await.expect("the node runs");
    }
    replicas
}

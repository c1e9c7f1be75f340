//! A client that does what it is told and nothing by itself: no leases are extended, no call is
//! made again.

use std::time::Duration;

use proto::pubsub::publisher_client::PublisherClient;
use proto::pubsub::subscriber_client::SubscriberClient;
use proto::pubsub::{
    AcknowledgeRequest, DeleteSubscriptionRequest, DeleteTopicRequest, ModifyAckDeadlineRequest,
    PublishRequest, PubsubMessage, PullRequest, ReceivedMessage, Subscription, Topic,
};
use tokio::time::{Instant, timeout_at};
use tonic::transport::{Channel, Endpoint};
use tonic::{Request, Status};

use crate::node::Node;
use crate::stream::Stream;

/// How long anything may take that should be there at once. Other processes use the machine too.
pub(crate) const SOON: Duration = Duration::from_secs(10);
/// Some clients accept no larger response.
const RESPONSE_BYTES_MAX: usize = 4 * 1024 * 1024;

/// One connection.
#[derive(Clone)]
pub(crate) struct Client {
    pub(crate) publisher: PublisherClient<Channel>,
    pub(crate) subscriber: SubscriberClient<Channel>,
}

impl Client {
    /// Connects when it is needed, and again when the connection is lost.
    pub(crate) fn new(node: &Node) -> Self {
        let endpoint = Endpoint::from_shared(format!("http://{}", node.endpoint()));
        let channel = endpoint.expect("an address").connect_lazy();
        Client {
            publisher: PublisherClient::new(channel.clone()),
            subscriber: SubscriberClient::new(channel)
                .max_decoding_message_size(RESPONSE_BYTES_MAX),
        }
    }

    /// The same connection, for responses of any size.
    pub(crate) fn with_large_responses(&self) -> Self {
        Client {
            publisher: self.publisher.clone(),
            subscriber: self
                .subscriber
                .clone()
                .max_decoding_message_size(usize::MAX),
        }
    }

    /// Another connection, whose transport takes large trailers.
    pub(crate) fn with_large_trailers(&self, node: &Node) -> Self {
        const TRAILERS_BYTES_MAX: u32 = 4 * 1024 * 1024;
        let endpoint = Endpoint::from_shared(format!("http://{}", node.endpoint()));
        let endpoint = endpoint.expect("an address");
        let endpoint = endpoint.http2_max_header_list_size(TRAILERS_BYTES_MAX);
        Client {
            publisher: self.publisher.clone(),
            subscriber: SubscriberClient::new(endpoint.connect_lazy()),
        }
    }

    /// Creates a topic; its name.
    pub(crate) async fn topic(&self, id: &str) -> String {
        let name = format!("projects/cases/topics/{id}");
        let topic = Topic {
            name: name.clone(),
            ..Topic::default()
        };
        let created = self.publisher.clone().create_topic(topic).await;
        created.expect("the topic is created");
        name
    }

    /// Creates a subscription of a topic, with the rest as given; its name.
    pub(crate) async fn subscription(&self, id: &str, topic: &str, rest: Subscription) -> String {
        let created = self.try_subscription(id, topic, rest).await;
        created.expect("the subscription is created").name
    }

    /// The same, which may be refused.
    pub(crate) async fn try_subscription(
        &self,
        id: &str,
        topic: &str,
        rest: Subscription,
    ) -> Result<Subscription, Status> {
        let subscription = Subscription {
            name: format!("projects/cases/subscriptions/{id}"),
            topic: topic.to_owned(),
            ..rest
        };
        let mut subscriber = self.subscriber.clone();
        let created = subscriber.create_subscription(subscription).await?;
        Ok(created.into_inner())
    }

    /// Deletes a topic.
    pub(crate) async fn delete_topic(&self, name: &str) {
        let topic = name.to_owned();
        let mut publisher = self.publisher.clone();
        let deleted = publisher.delete_topic(DeleteTopicRequest { topic });
        deleted.await.expect("the topic is deleted");
    }

    /// Deletes a subscription.
    pub(crate) async fn delete_subscription(&self, name: &str) {
        let subscription = name.to_owned();
        let request = DeleteSubscriptionRequest { subscription };
        let mut subscriber = self.subscriber.clone();
        let deleted = subscriber.delete_subscription(request);
        deleted.await.expect("the subscription is deleted");
    }

    /// Publishes in one request; the ids.
    pub(crate) async fn try_publish(
        &self,
        topic: &str,
        messages: &[PubsubMessage],
    ) -> Result<Vec<String>, Status> {
        let request = PublishRequest {
            topic: topic.to_owned(),
            messages: proto::wire::encode_all(messages),
        };
        let published = self.publisher.clone().publish(request).await?;
        Ok(published.into_inner().message_ids)
    }

    /// Publishes texts of one key (or none, an empty one) in one request.
    pub(crate) async fn publish(&self, topic: &str, key: &str, texts: &[&str]) {
        let messages: Vec<_> = texts.iter().map(|text| message(key, text)).collect();
        let published = self.try_publish(topic, &messages).await;
        assert_eq!(published.expect("it is published").len(), texts.len());
    }

    /// One Pull with a deadline.
    pub(crate) async fn try_pull(
        &self,
        subscription: &str,
        max_messages: i32,
        deadline: Duration,
    ) -> Result<Vec<ReceivedMessage>, Status> {
        let mut request = Request::new(PullRequest {
            subscription: subscription.to_owned(),
            max_messages,
            ..PullRequest::default()
        });
        request.set_timeout(deadline);
        let pulled = self.subscriber.clone().pull(request).await?;
        let received = pulled.into_inner().received_messages;
        Ok(proto::wire::decode_all(&received).expect("a node sends messages"))
    }

    /// Pulls until something comes.
    pub(crate) async fn pull(&self, subscription: &str, max_messages: i32) -> Vec<ReceivedMessage> {
        let pulled = self.try_pull(subscription, max_messages, SOON).await;
        let pulled = pulled.expect("a pull is answered");
        assert!(!pulled.is_empty(), "nothing came from {subscription}");
        pulled
    }

    /// Pulls until so many messages have come, acknowledging none.
    pub(crate) async fn pull_all(&self, subscription: &str, count: usize) -> Vec<ReceivedMessage> {
        let mut received = Vec::new();
        while received.len() < count {
            received.extend(
                self.pull(subscription, (count - received.len()) as i32)
                    .await,
            );
        }
        received
    }

    /// Nothing comes within a second.
    pub(crate) async fn pull_nothing(&self, subscription: &str) {
        let pulled = self
            .try_pull(subscription, 10, Duration::from_secs(1))
            .await;
        assert_eq!(pulled.expect("a pull is answered"), []);
    }

    pub(crate) async fn try_acknowledge(
        &self,
        subscription: &str,
        ack_ids: Vec<String>,
    ) -> Result<(), Status> {
        let request = AcknowledgeRequest {
            subscription: subscription.to_owned(),
            ack_ids,
        };
        self.subscriber.clone().acknowledge(request).await.map(drop)
    }

    pub(crate) async fn acknowledge(&self, subscription: &str, received: &[ReceivedMessage]) {
        let acknowledged = self.try_acknowledge(subscription, ack_ids(received)).await;
        acknowledged.expect("the ack is taken");
    }

    pub(crate) async fn try_modify(
        &self,
        subscription: &str,
        ack_ids: Vec<String>,
        ack_deadline_seconds: i32,
    ) -> Result<(), Status> {
        let request = ModifyAckDeadlineRequest {
            subscription: subscription.to_owned(),
            ack_ids,
            ack_deadline_seconds,
        };
        let modified = self.subscriber.clone().modify_ack_deadline(request).await;
        modified.map(drop)
    }

    /// Gives back at once.
    pub(crate) async fn nack(&self, subscription: &str, received: &[ReceivedMessage]) {
        let given_back = self.try_modify(subscription, ack_ids(received), 0).await;
        given_back.expect("the nack is taken");
    }

    /// Lets the leases of deliveries end, which takes a second.
    pub(crate) async fn expire(&self, subscription: &str, received: &[ReceivedMessage]) {
        let shortened = self.try_modify(subscription, ack_ids(received), 1).await;
        shortened.expect("the deadline is taken");
        // sleep: the time that passes is what ends the lease, and a client can't see that it has.
        tokio::time::sleep_until(Instant::now() + Duration::from_millis(1_100)).await;
    }

    /// Opens a stream with the first request of most clients, changed by `first`.
    pub(crate) async fn stream(
        &self,
        subscription: &str,
        first: proto::pubsub::StreamingPullRequest,
    ) -> Stream {
        let opened = Stream::open(self, subscription, first);
        let opened = timeout_at(Instant::now() + SOON, opened).await;
        opened
            .expect("headers come before the first message")
            .expect("the stream is accepted")
    }
}

pub(crate) fn message(key: &str, text: &str) -> PubsubMessage {
    PubsubMessage {
        data: text.to_owned().into(),
        ordering_key: key.to_owned(),
        ..PubsubMessage::default()
    }
}

/// An ordered subscription.
pub(crate) fn ordered() -> Subscription {
    Subscription {
        enable_message_ordering: true,
        ..Subscription::default()
    }
}

/// An exactly-once subscription.
pub(crate) fn exactly_once() -> Subscription {
    Subscription {
        enable_exactly_once_delivery: true,
        ..Subscription::default()
    }
}

/// What was published as text.
pub(crate) fn text(received: &ReceivedMessage) -> &str {
    let message = received.message.as_ref().expect("a delivery has a message");
    str::from_utf8(&message.data).expect("only texts were published")
}

pub(crate) fn texts(received: &[ReceivedMessage]) -> Vec<&str> {
    received.iter().map(text).collect()
}

pub(crate) fn ack_ids(received: &[ReceivedMessage]) -> Vec<String> {
    received.iter().map(|one| one.ack_id.clone()).collect()
}

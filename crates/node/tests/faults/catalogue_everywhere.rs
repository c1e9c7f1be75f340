//! Topics and subscriptions are created, used and deleted through different regions, each step at
//! once after the last has returned: the regions behave as if there were one catalogue. In between
//! a region is paused, so that it has to catch up when it goes on.

use std::time::Duration;

use bytes::Bytes;
use futures::{StreamExt, stream};
use prost::Message;
use proto::pubsub::publisher_client::PublisherClient;
use proto::pubsub::subscriber_client::SubscriberClient;
use proto::pubsub::{
    DeleteSubscriptionRequest, DeleteTopicRequest, GetSubscriptionRequest, PublishRequest,
    PubsubMessage, PullRequest, ReceivedMessage, Subscription, Topic,
};
use tokio::sync::watch;
use tokio::time::{Instant, sleep};
use tonic::transport::Channel;
use tonic::{Code, Status};

use crate::audit::way::to;
use crate::cluster::Cluster;
use crate::member::Member;

/// Between two regions and back.
const ROUND_TRIP_MS: u32 = 150;
/// Longer than an election, shorter than a catalogue lease.
const PAUSE: Duration = Duration::from_secs(3);
/// A round between regions that are far apart takes about forty round trips, and an election as
/// long as twenty.
const FAR_ROUND_MAX: Duration = Duration::from_secs(40);
/// No call waits longer, whatever happens to a region.
const ANSWER_MAX: Duration = Duration::from_secs(30);

/// A client in one region. What is not done yet it asks again, and nothing else.
#[derive(Clone)]
struct Client {
    publisher: PublisherClient<Channel>,
    subscriber: SubscriberClient<Channel>,
}

impl Client {
    fn new(endpoint: &str) -> Self {
        let channel = to(endpoint).connect_lazy();
        Client {
            publisher: PublisherClient::new(channel.clone()),
            subscriber: SubscriberClient::new(channel),
        }
    }

    async fn create_topic(&self, name: &str) {
        let topic = || Topic {
            name: name.to_owned(),
            ..Topic::default()
        };
        let created = again(|| {
            let (mut client, topic) = (self.publisher.clone(), topic());
            async move { client.create_topic(topic).await.map(|_| ()) }
        });
        done(created.await, Code::AlreadyExists);
    }

    async fn create_subscription(&self, name: &str, topic: &str) {
        let subscription = || Subscription {
            name: name.to_owned(),
            topic: topic.to_owned(),
            enable_message_ordering: true,
            ack_deadline_seconds: 60,
            ..Subscription::default()
        };
        let created = again(|| {
            let (mut client, subscription) = (self.subscriber.clone(), subscription());
            async move { client.create_subscription(subscription).await.map(|_| ()) }
        });
        done(created.await, Code::AlreadyExists);
    }

    async fn delete(&self, topic: &str, subscription: &str) {
        let deleted = again(|| {
            let subscription = subscription.to_owned();
            let mut client = self.subscriber.clone();
            async move {
                let request = DeleteSubscriptionRequest { subscription };
                client.delete_subscription(request).await.map(|_| ())
            }
        });
        done(deleted.await, Code::NotFound);
        let deleted = again(|| {
            let topic = topic.to_owned();
            let mut client = self.publisher.clone();
            async move {
                client
                    .delete_topic(DeleteTopicRequest { topic })
                    .await
                    .map(|_| ())
            }
        });
        done(deleted.await, Code::NotFound);
    }

    async fn publish(&self, topic: &str, data: &str) {
        let message = PubsubMessage {
            data: data.as_bytes().to_vec().into(),
            ordering_key: "key".to_owned(),
            ..PubsubMessage::default()
        };
        let request = PublishRequest {
            topic: topic.to_owned(),
            messages: proto::wire::encode_all(&[message]),
        };
        let published = again(|| {
            let (mut client, request) = (self.publisher.clone(), request.clone());
            async move { client.publish(request).await.map(|_| ()) }
        });
        published.await.expect("the topic is there, everywhere");
    }

    /// The first messages of a subscription, which has some.
    async fn pull(&self, subscription: &str) -> Result<Vec<String>, Status> {
        let until = Instant::now() + ANSWER_MAX;
        loop {
            let pulled = again(|| {
                let request = PullRequest {
                    subscription: subscription.to_owned(),
                    max_messages: 10,
                    ..PullRequest::default()
                };
                let mut client = self.subscriber.clone();
                async move { client.pull(request).await }
            });
            let messages = pulled.await?.into_inner().received_messages;
            if !messages.is_empty() {
                return Ok(messages.iter().map(text).collect());
            }
            assert!(Instant::now() < until, "nothing has arrived");
        }
    }

    async fn sees_subscription(&self, subscription: &str) -> Result<(), Status> {
        again(|| {
            let subscription = subscription.to_owned();
            let mut client = self.subscriber.clone();
            async move {
                let request = GetSubscriptionRequest { subscription };
                client.get_subscription(request).await.map(|_| ())
            }
        })
        .await
    }
}

/// What stands in a message.
fn text(received: &Bytes) -> String {
    let received = ReceivedMessage::decode(received.clone()).expect("it is one");
    let message = received.message.expect("it has one");
    String::from_utf8(message.data.to_vec()).expect("it is text")
}

/// Asks again while the answer is that it can't be known now.
async fn again<T, F: Future<Output = Result<T, Status>>>(ask: impl Fn() -> F) -> Result<T, Status> {
    let until = Instant::now() + ANSWER_MAX;
    loop {
        match ask().await {
            Err(status) if status.code() == Code::Unavailable && Instant::now() < until => {
                // sleep: a client that is told to try again does so after a while.
                sleep(Duration::from_millis(20)).await;
            }
            answer => return answer,
        }
    }
}

/// A change that was asked for twice, since the first answer was lost, may have been done.
fn done(answer: Result<(), Status>, before: Code) {
    match answer {
        Err(status) if status.code() != before => panic!("not done: {status}"),
        _ => {}
    }
}

/// One round through three regions, of which one may be paused meanwhile.
async fn round(number: usize, [first, second, third]: [&Client; 3]) {
    let topic = format!("projects/everywhere/topics/topic-{number}");
    let subscription = format!("projects/everywhere/subscriptions/subscription-{number}");
    for life in ["first life", "second life"] {
        first.create_topic(&topic).await;
        second.create_subscription(&subscription, &topic).await;
        third.publish(&topic, life).await;
        let pulled = first.pull(&subscription).await;
        let pulled = pulled.unwrap_or_else(|status| panic!("round {number}, {life}: {status}"));
        // A publish that was sent again may be there twice.
        assert!(
            pulled.iter().all(|data| data == life),
            "round {number}, {life}: {pulled:?}"
        );
        second.delete(&topic, &subscription).await;
        for (region, client) in [first, second, third].iter().enumerate() {
            let gone = client.sees_subscription(&subscription).await;
            assert_not_found(number, region, gone);
        }
        assert_not_found(number, 2, third.pull(&subscription).await);
    }
}

fn assert_not_found<T: std::fmt::Debug>(number: usize, region: usize, answer: Result<T, Status>) {
    let code = answer.as_ref().err().map(Status::code);
    assert_eq!(
        code,
        Some(Code::NotFound),
        "round {number}, region {region}: {answer:?}"
    );
}

/// How often it is done.
struct Play {
    rounds: usize,
    /// Rounds that go on at the same time.
    at_once: usize,
    /// After so many rounds a region is paused, the next one each time.
    paused_every: usize,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_change_through_one_region_is_there_in_all() {
    play(Play {
        rounds: 12,
        at_once: 4,
        paused_every: 4,
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "takes long: cargo test -p orderly-node --test faults two_thousand -- --ignored"]
async fn two_thousand_changes_through_one_region_are_there_in_all() {
    play(Play {
        rounds: 2_000,
        at_once: 25,
        paused_every: 100,
    })
    .await;
}

async fn play(play: Play) {
    let mut cluster = Cluster::of_regions_apart(ROUND_TRIP_MS).await;
    let endpoints = cluster.endpoints();
    let clients: Vec<Client> = endpoints.iter().map(|it| Client::new(it)).collect();
    let (done, seen) = watch::channel(0);
    let rounds = stream::iter(0..play.rounds).for_each_concurrent(play.at_once, |number| {
        let regions = [0, 1, 2].map(|place| &clients[(number + place) % clients.len()]);
        let done = &done;
        async move {
            round(number, regions).await;
            done.send_modify(|done| *done += 1);
        }
    });
    let due = (1..).map(|pause| pause * play.paused_every);
    let due: Vec<usize> = due.take_while(|due| *due < play.rounds).collect();
    tokio::join!(rounds, pause(cluster.members(), &due, seen));
    cluster.replicas_are_alike().await;
}

/// Pauses one node after another, each when so many rounds are done.
async fn pause(members: &[Member], due: &[usize], mut done: watch::Receiver<usize>) {
    for (due, member) in due.iter().zip(members.iter().cycle()) {
        let reached = done.wait_for(|done| done >= due).await;
        drop(reached.expect("the rounds go on"));
        member.pause();
        // sleep: the length of the pause is what is tested
        sleep(PAUSE).await;
        member.resume();
    }
}

/// Farther apart than any two regions on Earth, so that what is timed by the distance must be timed
/// by this one: heartbeats that are not answered before the next depose every leader.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn regions_may_be_far_apart() {
    let cluster = Cluster::of_regions_apart(400).await;
    let clients: Vec<Client> = cluster
        .endpoints()
        .iter()
        .map(|it| Client::new(it))
        .collect();
    for number in 0..3 {
        let regions = [0, 1, 2].map(|place| &clients[(number + place) % clients.len()]);
        let began = Instant::now();
        round(number, regions).await;
        let took = began.elapsed();
        assert!(took < FAR_ROUND_MAX, "round {number}: {took:?}");
    }
}

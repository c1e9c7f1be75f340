//! The publishers and consumers of an audit. They do what careful users do: one publish of a key at
//! a time, the same again after an answer that says nothing, and another node when theirs is gone.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use proto::pubsub::publisher_client::PublisherClient;
use proto::pubsub::subscriber_client::SubscriberClient;
use proto::pubsub::{
    DeleteSubscriptionRequest, DeleteTopicRequest, PublishRequest, StreamingPullRequest,
    StreamingPullResponse, Subscription, Topic,
};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until, timeout, timeout_at};
use tonic::transport::Channel;
use tonic::{Code, Request, Status, Streaming};

use super::Common;
use super::acks::{Acknowledging, Acks};
use super::endpoints::{Connection, Endpoints};
use super::ledger::{Audited, Ledger};
use super::message::{Delivery, Token};
use crate::cli::session::{is_passing, requests};
use crate::cli::{Failure, Target};

/// The deadline of one publish. A client gives up after it, and asks another node.
const CALL_MAX: Duration = Duration::from_secs(2);
/// The wait before a call that failed is made again.
const RETRY: Duration = Duration::from_millis(20);
/// How long a topic or a subscription may take to be created.
const CREATE_MAX: Duration = Duration::from_secs(30);
/// How long it may take to be deleted.
const DELETE_MAX: Duration = Duration::from_secs(10);
/// How long the last publishes may take in the end.
const FINISH_MAX: Duration = Duration::from_secs(10);
/// How long the delivery of what is left may stand still in the end: longer than the leases of
/// exactly-once deliveries, which run out first where their client is lost.
const STANDSTILL_MAX: Duration = Duration::from_secs(30);
/// How long that delivery may take in all.
const DRAIN_MAX: Duration = Duration::from_secs(300);
/// How often it is looked whether everything was delivered.
const LOOK_AGAIN_AFTER: Duration = Duration::from_millis(50);
const ACK_DEADLINE_SECONDS: i32 = 10;
/// Messages that one stream may have outstanding.
const OUTSTANDING: i64 = 1_000;

/// What all clients of the audit share.
struct Shared {
    endpoints: Endpoints,
    ledger: Arc<Ledger>,
    topic: String,
    /// The pause between two publishes of a key.
    pause: Duration,
}

/// An audit that is ready to start.
pub(super) struct Workload {
    shared: Arc<Shared>,
    subscriptions: Vec<(Audited, String)>,
    keys: u32,
    /// Whether the topic, or a subscription, may be there.
    exists: AtomicBool,
}

/// An audit at work.
pub(super) struct Running {
    shared: Arc<Shared>,
    stop_publishing: watch::Sender<bool>,
    publishers: tokio::sync::Mutex<JoinSet<()>>,
    /// Ends with this.
    _consumers: JoinSet<()>,
}

impl Workload {
    /// An audit whose topic and subscriptions have names that no other run has.
    ///
    /// # Errors
    /// [`Failure`] when they would not be names.
    pub(super) fn new(
        target: &Target,
        endpoints: Endpoints,
        common: &Common,
        ledger: Arc<Ledger>,
    ) -> Result<Self, Failure> {
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        let run = format!("drill-{}", since.unwrap_or_default().as_millis());
        let topic = target.topic(&run)?;
        let subscriptions = vec![
            (Audited::AtLeastOnce, target.subscription(&run)?),
            (
                Audited::ExactlyOnce,
                target.subscription(&format!("{run}-once"))?,
            ),
        ];
        Ok(Workload {
            shared: Arc::new(Shared {
                endpoints,
                ledger,
                topic,
                pause: Duration::from_secs(1) / common.rate,
            }),
            subscriptions,
            keys: common.keys,
            exists: AtomicBool::new(false),
        })
    }

    /// Creates the topic and the subscriptions.
    ///
    /// # Errors
    /// [`Failure`] when they can't be created.
    pub(super) async fn create(&self) -> Result<(), Failure> {
        let Shared {
            endpoints, topic, ..
        } = &*self.shared;
        let named = Topic {
            name: topic.clone(),
            ..Topic::default()
        };
        done(
            endpoints,
            CREATE_MAX,
            Code::AlreadyExists,
            async |channel| {
                // From the first call on nobody knows.
                self.exists.store(true, Ordering::Relaxed);
                let mut publisher = PublisherClient::new(channel);
                publisher.create_topic(named.clone()).await.map(drop)
            },
        )
        .await?;
        for (audited, name) in &self.subscriptions {
            let subscription = Subscription {
                name: name.clone(),
                topic: topic.clone(),
                enable_message_ordering: true,
                enable_exactly_once_delivery: *audited == Audited::ExactlyOnce,
                ack_deadline_seconds: ACK_DEADLINE_SECONDS,
                ..Subscription::default()
            };
            done(
                endpoints,
                CREATE_MAX,
                Code::AlreadyExists,
                async |channel| {
                    let mut subscriber = SubscriberClient::new(channel);
                    let created = subscriber.create_subscription(subscription.clone()).await;
                    created.map(drop)
                },
            )
            .await?;
        }
        Ok(())
    }

    /// The topic's full name.
    pub(super) fn topic(&self) -> &str {
        &self.shared.topic
    }

    /// Starts publishers and consumers: of each subscription one stream at each endpoint.
    pub(super) fn start(&self) -> Running {
        let (stop_publishing, stopped) = watch::channel(false);
        let mut publishers = JoinSet::new();
        for key in 0..self.keys {
            let shared = Arc::clone(&self.shared);
            publishers.spawn(publish(shared, key, stopped.clone()));
        }
        let mut consumers = JoinSet::new();
        for (audited, name) in &self.subscriptions {
            let acknowledging = Acknowledging {
                endpoints: self.shared.endpoints.clone(),
                ledger: Arc::clone(&self.shared.ledger),
                audited: *audited,
                subscription: name.clone(),
            };
            let acks = Acks::start(acknowledging, self.keys, &mut consumers);
            for preferred in 0..self.shared.endpoints.len() {
                let consumer = Consumer {
                    shared: Arc::clone(&self.shared),
                    audited: *audited,
                    subscription: name.clone(),
                    acks: acks.clone(),
                };
                consumers.spawn(consumer.work(preferred));
            }
        }
        Running {
            shared: Arc::clone(&self.shared),
            stop_publishing,
            publishers: tokio::sync::Mutex::new(publishers),
            _consumers: consumers,
        }
    }

    /// Deletes the topic and the subscriptions, if they were created.
    ///
    /// # Errors
    /// [`Failure`] when they can't be deleted in time.
    pub(super) async fn delete(&self) -> Result<(), Failure> {
        if !self.exists.load(Ordering::Relaxed) {
            return Ok(());
        }
        let Shared {
            endpoints, topic, ..
        } = &*self.shared;
        for (_, subscription) in &self.subscriptions {
            done(endpoints, DELETE_MAX, Code::NotFound, async |channel| {
                let subscription = subscription.clone();
                let request = DeleteSubscriptionRequest { subscription };
                let mut subscriber = SubscriberClient::new(channel);
                subscriber.delete_subscription(request).await.map(drop)
            })
            .await?;
        }
        done(endpoints, DELETE_MAX, Code::NotFound, async |channel| {
            let topic = topic.clone();
            let mut publisher = PublisherClient::new(channel);
            let deleted = publisher.delete_topic(DeleteTopicRequest { topic }).await;
            deleted.map(drop)
        })
        .await?;
        self.exists.store(false, Ordering::Relaxed);
        Ok(())
    }

    /// What a person has to do where they could not be deleted.
    pub(super) fn left(&self) -> Option<String> {
        let subscriptions = self.subscriptions.iter();
        let subscriptions: Vec<&str> = subscriptions.map(|(_, name)| &**name).collect();
        self.exists.load(Ordering::Relaxed).then(|| {
            format!(
                "these may be left: delete them with \"orderly subscriptions delete {}\" and \
                 \"orderly topics delete {}\"",
                subscriptions.join(" "),
                self.shared.topic
            )
        })
    }
}

/// Does something to the cluster, and again where the answer says nothing. `already` is the answer
/// where an attempt that said nothing has done it.
async fn done(
    endpoints: &Endpoints,
    patience: Duration,
    already: Code,
    call: impl AsyncFn(Channel) -> Result<(), Status>,
) -> Result<(), Failure> {
    let give_up = Instant::now() + patience;
    loop {
        let connected = timeout_at(give_up, endpoints.connect(0)).await;
        let connection = connected.map_err(|_| Failure::Unreachable {
            endpoint: endpoints.names(),
            why: format!("none said at /readyz within {patience:?} that it is ready"),
        })?;
        // A node that hangs answers nothing.
        let answered = timeout(DELETE_MAX, call(connection.channel)).await;
        match answered.unwrap_or_else(|_| Err(Status::deadline_exceeded("no answer"))) {
            Ok(()) => return Ok(()),
            Err(status) if status.code() == already => return Ok(()),
            Err(status) if is_passing(status.code()) && Instant::now() < give_up => {
                sleep(RETRY).await;
            }
            Err(status) => return Err(status.into()),
        }
    }
}

impl Running {
    /// Lets every publisher finish what it has begun, unless it takes too long.
    pub(super) async fn stop_publishing(&self) {
        self.stop_publishing.send_replace(true);
        let mut publishers = self.publishers.lock().await;
        let finished = async { while publishers.join_next().await.is_some() {} };
        // A key that can't be published to by then has failed the drill already.
        let _ = timeout(FINISH_MAX, finished).await;
        publishers.shutdown().await;
    }

    /// Waits until everything was delivered, or nothing more comes. What is missing then is in the
    /// verdict.
    pub(super) async fn drain(&self) {
        let give_up = Instant::now() + DRAIN_MAX;
        let (mut missing, mut changed) = (usize::MAX, Instant::now());
        while missing > 0 && changed.elapsed() < STANDSTILL_MAX && Instant::now() < give_up {
            sleep(LOOK_AGAIN_AFTER).await;
            let now_missing = self.shared.ledger.missing();
            if now_missing != missing {
                (missing, changed) = (now_missing, Instant::now());
            }
        }
    }
}

/// Publishes the values of one key, one after another.
async fn publish(shared: Arc<Shared>, key: u32, stopped: watch::Receiver<bool>) {
    let preferred = key as usize;
    let mut connection = shared.endpoints.connect(preferred).await;
    let mut next = Instant::now();
    for value in 0.. {
        let mut attempt = 0;
        loop {
            if !shared.endpoints.is_ready(&connection) {
                connection = shared.endpoints.connect(preferred).await;
            }
            let token = Token {
                key,
                value,
                attempt,
            };
            let called = shared.ledger.now();
            let publish = attempt_publish(&connection, &shared.topic, token);
            let answered = tokio::select! {
                answered = publish => answered,
                () = shared.endpoints.falls_silent(&connection) => {
                    Err(Status::unavailable("the node is silent"))
                }
            };
            match answered {
                Ok(()) => break shared.ledger.published(token, called),
                // Whether it was stored is open: the value is not given up before it is known to be.
                Err(_) => {
                    shared.ledger.failed(called);
                    attempt += 1;
                    sleep(RETRY).await;
                    connection = shared.endpoints.connect(preferred).await;
                }
            }
        }
        if *stopped.borrow() {
            return;
        }
        next = Instant::now().max(next + shared.pause);
        sleep_until(next).await;
    }
}

async fn attempt_publish(connection: &Connection, topic: &str, token: Token) -> Result<(), Status> {
    let mut request = Request::new(PublishRequest {
        topic: topic.to_owned(),
        messages: vec![token.encode()],
    });
    request.set_timeout(CALL_MAX);
    let mut client = PublisherClient::new(connection.channel.clone());
    // A node that hangs does not keep its word on deadlines either.
    let answered = timeout(CALL_MAX, client.publish(request)).await;
    answered.map_err(|_| Status::deadline_exceeded("no answer"))??;
    Ok(())
}

/// A consumer of one subscription.
struct Consumer {
    shared: Arc<Shared>,
    audited: Audited,
    subscription: String,
    acks: Acks,
}

impl Consumer {
    /// Keeps one stream open, wherever there is a node for it.
    async fn work(self, preferred: usize) {
        loop {
            let channel = self.shared.endpoints.connect(preferred).await.channel;
            // How a stream ends does not matter: the next one shows what became of its messages.
            let _ = self.stream(channel).await;
            sleep(RETRY).await;
        }
    }

    /// A stream is read on while acks are under way, and may end before they are answered: ids are
    /// good through any node.
    async fn stream(&self, channel: Channel) -> Result<(), Status> {
        let mut client = SubscriberClient::new(channel);
        let first = StreamingPullRequest {
            subscription: self.subscription.clone(),
            stream_ack_deadline_seconds: ACK_DEADLINE_SECONDS,
            max_outstanding_messages: OUTSTANDING,
            ..StreamingPullRequest::default()
        };
        let responses = client.streaming_pull(requests(first)).await?;
        let mut responses = responses.into_inner();
        let number = self.shared.ledger.stream();
        let ended = self.read(&mut responses, number).await;
        self.shared.ledger.stream_ended(number);
        ended
    }

    async fn read(
        &self,
        responses: &mut Streaming<StreamingPullResponse>,
        number: u64,
    ) -> Result<(), Status> {
        while let Some(response) = responses.message().await? {
            let received = response.received_messages.into_iter();
            let deliveries: Vec<Delivery> = received.filter_map(Delivery::read).collect();
            // All at the time at which they have come, before any has to wait for its ack.
            for delivery in &deliveries {
                let ledger = &self.shared.ledger;
                ledger.delivered(self.audited, number, delivery);
            }
            for delivery in deliveries {
                self.acks.add(delivery).await;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn endpoints_of_which_none_is_ready_are_said() {
        // Nobody listens on the first port, and the second is none.
        let endpoints = Endpoints::new(vec!["127.0.0.1:1".into(), "nowhere".into()]);
        let patience = Duration::from_millis(300);
        let call = async |_| unreachable!("nobody is called");
        let done = done(&endpoints, patience, Code::AlreadyExists, call);
        let ended = timeout(CREATE_MAX, done).await;
        let failure = ended.expect("it does not wait for ever").unwrap_err();
        let text = failure.to_string();
        for word in ["127.0.0.1:1, nowhere", "/readyz", "300ms"] {
            assert!(text.contains(word), "{word}: {text}");
        }
        assert!(matches!(failure, Failure::Unreachable { .. }));
    }
}

//! The load of an audit: publishers, and a consumer of each of two ordered subscriptions.

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use engine::control::SURVIVAL_LABEL;
use proto::pubsub::{Subscription as Resource, Topic};
use sim::history::{Subscription, What};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, interval, sleep, timeout};
use tonic::transport::Channel;
use tonic::{Code, Status};

use super::consumer::consume;
use super::publisher::publish;
use super::recorder::Recorder;
use super::resources::{create_subscription, create_topic_as};
use super::way::Way;

/// Publishers, and keys of each.
const PUBLISHERS: usize = 3;
const KEYS: usize = 5;
/// How long anything of the load may take: after a crash the leases of exactly-once deliveries run
/// out first, and other processes use the machine too.
const PATIENCE: Duration = Duration::from_secs(90);
/// What comes again with others comes within this time.
const CALM: Duration = Duration::from_secs(1);
/// Events that are shown before one that breaks a promise.
const SHOWN: usize = 60;
/// Between two looks at a state.
const LOOK_EVERY: Duration = Duration::from_millis(50);

const TOPIC: &str = "projects/orderly/topics/orders";
/// A topic that the load does not use, for what a test publishes itself.
pub(crate) const TOPIC_ALONE: &str = "projects/orderly/topics/alone";
pub(crate) const AT_LEAST_ONCE: (&str, Subscription) =
    ("projects/orderly/subscriptions/shipping", Subscription(1));
const EXACTLY_ONCE: (&str, Subscription) =
    ("projects/orderly/subscriptions/billing", Subscription(2));

/// Clients at work.
pub(crate) struct Load {
    recorder: Arc<Recorder>,
    stop_publishing: watch::Sender<bool>,
    publishers: JoinSet<()>,
    stop_consuming: watch::Sender<bool>,
    consumers: JoinSet<()>,
}

impl Load {
    /// Creates the topic and its subscriptions, and starts. Each publisher publishes at this pace.
    pub(crate) async fn start(endpoints: &[String], every: Duration) -> Self {
        Load::start_with(endpoints, every, Names::new(""), None).await
    }

    /// The same with a topic of its own, whose messages are to survive the loss of a `zone` or of a
    /// `region`.
    pub(crate) async fn start_to_survive(
        endpoints: &[String],
        every: Duration,
        goal: &str,
    ) -> Self {
        let names = Names::new(&format!("-{goal}"));
        let label = (SURVIVAL_LABEL.to_owned(), goal.to_owned());
        Load::start_with(endpoints, every, names, Some(label)).await
    }

    async fn start_with(
        endpoints: &[String],
        every: Duration,
        names: Names,
        label: Option<(String, String)>,
    ) -> Self {
        let recorder = Arc::new(Recorder::new());
        names.create(endpoints, label, &recorder).await;
        let (stop_publishing, publishing) = watch::channel(false);
        let (stop_consuming, consuming) = watch::channel(false);
        let mut publishers = JoinSet::new();
        for publisher in 0..PUBLISHERS {
            let keys = (0..KEYS).map(|key| format!("key-{publisher}-{key}").into());
            publishers.spawn(publish(
                Arc::clone(&recorder),
                Way::new(endpoints, publisher),
                names.topic.clone(),
                keys.collect(),
                every,
                publishing.clone(),
            ));
        }
        let mut consumers = JoinSet::new();
        for (name, subscription) in names.subscriptions {
            consumers.spawn(consume(
                Arc::clone(&recorder),
                Way::new(endpoints, subscription.0 as usize),
                name,
                subscription,
                consuming.clone(),
            ));
        }
        Load {
            recorder,
            stop_publishing,
            publishers,
            stop_consuming,
            consumers,
        }
    }

    /// Waits until so many more messages were acknowledged.
    pub(crate) async fn goes_on(&self, acks: usize) {
        let before = self.recorder.acks();
        until("the load goes on", || {
            let more = self.recorder.acks() - before;
            (more >= acks).then_some(()).ok_or(more)
        })
        .await;
    }

    /// Writes that nobody serves from here on, or that somebody does again.
    pub(crate) fn event(&self, what: What) {
        self.recorder.event(what);
    }

    /// Stops publishing, waits until everything is acknowledged, and judges.
    pub(crate) async fn ends_well(self) {
        self.stop_publishing.send_replace(true);
        self.publishers.join_all().await;
        let all = [AT_LEAST_ONCE.1, EXACTLY_ONCE.1];
        let recorder = &self.recorder;
        for _ in 0..2 {
            until("everything is acknowledged", || {
                match &recorder.unsettled(&all)[..] {
                    [] => Ok(()),
                    left => Err(format!("{} are not, as {:?}", left.len(), left[0])),
                }
            })
            .await;
            // sleep: whether anything more comes is the question
            sleep(CALM).await;
        }
        self.stop_consuming.send_replace(true);
        self.consumers.join_all().await;
        let history = recorder.history(true);
        let violations = sim::invariants::check(&history);
        for violation in &violations {
            let end = history.events.len().min(violation.event + 1);
            let shown = &history.events[end.saturating_sub(SHOWN)..end];
            eprintln!("{violation}, after {shown:#?}");
        }
        assert!(violations.is_empty(), "{violations:#?}");
    }
}

/// The topic of a load and its subscriptions.
struct Names {
    topic: String,
    subscriptions: [(String, Subscription); 2],
}

impl Names {
    /// Of the load that has this at the end of all its names.
    fn new(end: &str) -> Self {
        let named = |(name, subscription)| (format!("{name}{end}"), subscription);
        Names {
            topic: format!("{TOPIC}{end}"),
            subscriptions: [AT_LEAST_ONCE, EXACTLY_ONCE].map(named),
        }
    }

    /// Creates the topic with such labels, and two ordered subscriptions, one of them exactly-once.
    async fn create(
        &self,
        endpoints: &[String],
        labels: impl IntoIterator<Item = (String, String)>,
        recorder: &Recorder,
    ) {
        let topic = Topic {
            name: self.topic.clone(),
            labels: labels.into_iter().collect(),
            ..Topic::default()
        };
        create_topic_as(endpoints, &topic).await;
        for (name, subscription) in &self.subscriptions {
            let exactly_once = *subscription == EXACTLY_ONCE.1;
            let resource = Resource {
                name: name.clone(),
                topic: self.topic.clone(),
                enable_message_ordering: true,
                enable_exactly_once_delivery: exactly_once,
                ..Resource::default()
            };
            create_subscription(endpoints, &resource).await;
            recorder.event(What::Created {
                subscription: *subscription,
                ordered: true,
                exactly_once,
                may_wait: false,
            });
        }
    }
}

/// Makes a call over whichever node is ready, and again where the answer is no answer; what exists
/// already counts as created. Each attempt may take `call_max`.
pub(crate) async fn retried<T: Default>(
    endpoints: &[String],
    call_max: Duration,
    call: impl AsyncFn(Channel) -> Result<T, Status>,
) -> T {
    let give_up = Instant::now() + PATIENCE;
    let mut look = interval(LOOK_EVERY);
    for first in 0.. {
        look.tick().await;
        let channel = Way::new(endpoints, first).channel().await;
        let answer = timeout(call_max, call(channel)).await;
        match answer.unwrap_or_else(|_| Err(Status::deadline_exceeded("no answer"))) {
            Ok(answer) => return answer,
            // The attempt before said nothing, and did it.
            Err(status) if status.code() == Code::AlreadyExists => break,
            Err(status) => assert!(Instant::now() < give_up, "no answer but {status:?}"),
        }
    }
    T::default()
}

/// Waits for a state. While it is not reached, `reached` says how far it is.
pub(crate) async fn until<Short: Debug>(state: &str, reached: impl Fn() -> Result<(), Short>) {
    let give_up = Instant::now() + PATIENCE;
    let mut look = interval(LOOK_EVERY);
    while let Err(short) = reached() {
        assert!(Instant::now() < give_up, "not in time: {state}: {short:?}");
        look.tick().await;
    }
}

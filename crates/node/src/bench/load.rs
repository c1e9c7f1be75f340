//! One run: publishers and consumers side by side, or one after the other.

use std::sync::Arc;
use std::time::Instant;

use proto::pubsub::publisher_client::PublisherClient;
use proto::pubsub::subscriber_client::SubscriberClient;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Duration, sleep_until, timeout};
use tonic::transport::Channel;

use super::account::Account;
use super::consumer::Consuming;
use super::options::Options;
use super::progress;
use super::publisher::Publishing;
use super::report::Report;
use super::resources::Resources;
use crate::cli::{Failure, Target};

/// How often the end of a run looks for messages that have not arrived.
const LOOK: Duration = Duration::from_millis(5);

/// Tasks of one side.
type Workers = JoinSet<Result<(), Failure>>;

/// Runs the load that the options describe.
pub(crate) async fn run(
    target: &Target,
    options: &Options,
    resources: &Resources,
) -> Result<Report, Failure> {
    let mut publishers = Vec::new();
    for target in target.through(&options.publish_through, options.publishers) {
        publishers.push(target.publisher().await?);
    }
    let mut subscribers = Vec::new();
    for target in target.through(&options.consume_through, options.consumers) {
        subscribers.push(target.subscriber().await?);
    }

    let (finish, done) = watch::channel(false);
    let account = Arc::new(Account::default());
    let start = Instant::now();
    let subscription = resources.subscription.clone();
    let consuming = Consuming::new(options, subscription, Arc::clone(&account), start, done);
    let consuming = Arc::new(consuming);
    let publishing = Publishing::new(options, resources.topic.clone(), account, start);
    let publishing = Arc::new(publishing);
    let mut telling = JoinSet::new();
    telling.spawn(progress::tell(
        Arc::clone(&publishing),
        Arc::clone(&consuming),
    ));

    let mut consumers = Workers::new();
    if !options.no_consume && !options.backlog {
        consume(&mut consumers, &consuming, subscribers.clone());
    }
    publish(options, &publishing, publishers, start, &mut consumers).await?;
    if options.backlog {
        consuming.meter.begin(Instant::now());
        consume(&mut consumers, &consuming, subscribers);
    }
    if !options.no_consume {
        drain(options, &consuming, &mut consumers).await?;
    }
    let memory = resources.memory(options).await?;
    finish.send_replace(true);
    while let Some(ended) = consumers.join_next().await {
        unwind(ended)?;
    }
    Ok(Report {
        memory,
        ..report(options, &publishing, &consuming)
    })
}

fn consume(
    consumers: &mut Workers,
    consuming: &Arc<Consuming>,
    subscribers: Vec<SubscriberClient<Channel>>,
) {
    for subscriber in subscribers {
        consumers.spawn(Arc::clone(consuming).work(subscriber));
    }
}

/// Publishes until the time is over or all is published. Consumers that fail end it too.
async fn publish(
    options: &Options,
    publishing: &Arc<Publishing>,
    publishers: Vec<PublisherClient<Channel>>,
    start: Instant,
    consumers: &mut Workers,
) -> Result<(), Failure> {
    let mut workers = Workers::new();
    for (seed, publisher) in (0..options.in_flight).zip(publishers.iter().cycle()) {
        workers.spawn(Arc::clone(publishing).work(publisher.clone(), seed as u64));
    }
    let length = options.length();
    let end = sleep_until((start + length.unwrap_or_default()).into());
    tokio::pin!(end);
    loop {
        tokio::select! {
            () = &mut end, if length.is_some() && !publishing.pace.is_stopped() => {
                publishing.pace.stop();
            }
            Some(ended) = consumers.join_next() => unwind(ended)?,
            ended = workers.join_next() => match ended {
                Some(ended) => unwind(ended)?,
                None => return Ok(()),
            },
        }
    }
}

/// Waits until all that was confirmed has arrived, or the time for it is over.
async fn drain(
    options: &Options,
    consuming: &Consuming,
    consumers: &mut Workers,
) -> Result<(), Failure> {
    let deadline = Instant::now() + options.drain();
    while consuming.account.summary().missing > 0 && Instant::now() < deadline {
        // A consumer ends here only by failing.
        if let Ok(Some(ended)) = timeout(LOOK, consumers.join_next()).await {
            unwind(ended)?;
        }
    }
    Ok(())
}

/// What a task returned; its panic goes on here.
fn unwind(ended: Result<Result<(), Failure>, tokio::task::JoinError>) -> Result<(), Failure> {
    match ended {
        Ok(result) => result,
        Err(broken) => std::panic::resume_unwind(broken.into_panic()),
    }
}

fn report(options: &Options, publishing: &Publishing, consuming: &Consuming) -> Report {
    Report {
        size: options.size,
        published: publishing.meter.reading(),
        consumed: (!options.no_consume).then(|| consuming.meter.reading()),
        backlog: options.backlog,
        exactly_once: options.exactly_once,
        account: consuming.account.summary(),
        gaps: options.checks_order().then(|| consuming.gaps()),
        retries: publishing.retries(),
        ack_retries: consuming.ack_retries(),
        refused_acks: consuming.refused_acks(),
        unsent: publishing.pace.unsent(),
        memory: None,
    }
}

//! kill -9 again and again under load: the whole history keeps every promise.

use std::sync::Arc;
use std::time::Duration;

use sim::history::{Subscription, What};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, interval};
use tonic::transport::{Channel, Endpoint};

use crate::load::{consume, publish};
use crate::node::Node;
use crate::recorder::Recorder;

/// How often the node is killed.
const KILLS: usize = 5;
/// Acks between two kills.
const ACKS: usize = 300;
/// How long the load may take for that, and at the end for the rest. After a crash the leases of
/// exactly-once deliveries run out first.
const DEADLINE: Duration = Duration::from_secs(60);
/// Publishers, and keys of each.
const PUBLISHERS: usize = 3;
const KEYS: usize = 5;

const AT_LEAST_ONCE: Subscription = Subscription(1);
const EXACTLY_ONCE: Subscription = Subscription(2);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_that_was_answered_is_lost_or_out_of_order() {
    let mut node = Node::start();
    let recorder = Arc::new(Recorder::new());
    create(&node, &recorder);

    let (stop_publishing, publishing) = watch::channel(false);
    let (stop_consuming, consuming) = watch::channel(false);
    let mut publishers = JoinSet::new();
    for publisher in 0..PUBLISHERS {
        let keys = (0..KEYS)
            .map(|key| format!("key-{publisher}-{key}").into())
            .collect();
        let topic = "projects/orderly/topics/orders".to_owned();
        let recorder = Arc::clone(&recorder);
        publishers.spawn(publish(
            recorder,
            channel(&node),
            topic,
            keys,
            publishing.clone(),
        ));
    }
    let mut consumers = JoinSet::new();
    for (name, subscription) in [("shipping", AT_LEAST_ONCE), ("billing", EXACTLY_ONCE)] {
        let name = format!("projects/orderly/subscriptions/{name}");
        let recorder = Arc::clone(&recorder);
        consumers.spawn(consume(
            recorder,
            channel(&node),
            name,
            subscription,
            consuming.clone(),
        ));
    }

    for _ in 0..KILLS {
        let acks = recorder.acks();
        until("acks between two kills", || recorder.acks() >= acks + ACKS).await;
        node.kill();
        recorder.event(What::Down);
        node.restart();
        recorder.event(What::Up);
    }
    stop_publishing.send_replace(true);
    publishers.join_all().await;
    let all = [AT_LEAST_ONCE, EXACTLY_ONCE];
    until("everything is acknowledged", || {
        recorder.unsettled(&all) == 0
    })
    .await;
    stop_consuming.send_replace(true);
    consumers.join_all().await;

    let violations = sim::invariants::check(&recorder.history(true));
    assert!(violations.is_empty(), "{violations:#?}");
}

/// One topic with two ordered subscriptions.
fn create(node: &Node, recorder: &Recorder) {
    node.orderly_ok(&["topics", "create", "orders"]);
    let flags: [(&str, Subscription, &[&str]); 2] = [
        ("shipping", AT_LEAST_ONCE, &["--enable-message-ordering"]),
        (
            "billing",
            EXACTLY_ONCE,
            &[
                "--enable-message-ordering",
                "--enable-exactly-once-delivery",
            ],
        ),
    ];
    for (name, subscription, flags) in flags {
        let create = ["subscriptions", "create", name, "--topic", "orders"];
        node.orderly_ok(&[&create[..], flags].concat());
        let exactly_once = subscription == EXACTLY_ONCE;
        recorder.event(What::Created {
            subscription,
            ordered: true,
            exactly_once,
            may_wait: false,
        });
    }
}

/// A connection of its own, made when it is needed and again after each crash.
fn channel(node: &Node) -> Channel {
    let uri = format!("http://{}", node.endpoint());
    Endpoint::from_shared(uri)
        .expect("an address")
        .connect_lazy()
}

/// Waits for a state.
async fn until(state: &str, reached: impl Fn() -> bool) {
    let deadline = Instant::now() + DEADLINE;
    let mut look = interval(Duration::from_millis(50));
    while !reached() {
        assert!(Instant::now() < deadline, "not in time: {state}");
        look.tick().await;
    }
}

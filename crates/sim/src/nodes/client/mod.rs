//! The clients of a simulated cluster. Each is a host of its own, knows some nodes, and asks the
//! next one when one fails.
//!
//! - [`endpoints`]: the nodes that it knows.
//! - [`administrator`]: creates what the others use.
//! - [`publisher`], [`consumer`]: what they do.
//! - [`operator`]: moves keys, and has nodes leave.

mod administrator;
mod consumer;
mod endpoints;
mod operator;
mod publisher;

pub(super) use administrator::administrate;
pub(super) use consumer::consume;
pub(super) use endpoints::Endpoints;
pub(super) use operator::{Order, Ordered, move_keys, obey};
pub(super) use publisher::publish;

use std::time::Duration;

use tonic::Request;

use crate::history::Subscription;

/// The topic that all messages are published to.
const TOPIC: &str = "projects/simulation/topics/orders";
/// The ack deadline of all subscriptions.
const ACK_DEADLINE: Duration = Duration::from_secs(10);
/// How long a client waits for an answer before it asks another node.
const ANSWER_MAX: Duration = Duration::from_secs(5);
/// How long a client waits after a failure.
const AGAIN_AFTER: Duration = Duration::from_millis(100);

/// A subscription of the simulation.
#[derive(Clone, Copy, Debug)]
pub(super) struct Subscribed {
    pub(super) number: Subscription,
    pub(super) exactly_once: bool,
}

impl Subscribed {
    fn name(self) -> String {
        format!("projects/simulation/subscriptions/orders-{}", self.number.0)
    }
}

/// What clients shall do now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Phase {
    /// Wait until the topic and the subscriptions are there.
    Beginning,
    /// Publish and consume.
    Load,
    /// Consume.
    Drain,
}

/// A call that the caller gives up after a while, and the node knows it.
fn timed<T>(message: T) -> Request<T> {
    let mut request = Request::new(message);
    request.set_timeout(ANSWER_MAX);
    request
}

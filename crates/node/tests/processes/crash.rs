//! kill -9 again and again under load: the whole history keeps every promise.

use std::time::Duration;

use sim::history::What;

use crate::audit::load::Load;
use crate::node::Node;

/// How often the node is killed.
const KILLS: usize = 5;
/// Acks between two kills.
const ACKS: usize = 300;
/// The pace of each publisher.
const PACE: Duration = Duration::from_millis(4);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_that_was_answered_is_lost_or_out_of_order() {
    let mut node = Node::start();
    let load = Load::start(&[node.endpoint()], PACE).await;
    for _ in 0..KILLS {
        load.goes_on(ACKS).await;
        node.kill();
        load.event(What::Down);
        node.restart();
        load.event(What::Up);
    }
    load.ends_well().await;
}

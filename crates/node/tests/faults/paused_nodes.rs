//! Each node in turn is paused, leaders among them, for longer than the others wait for it. When it
//! goes on it does not know that time has passed, and must not serve what is over.

use std::time::Duration;

use tokio::time::sleep;

use crate::audit::load::Load;
use crate::cluster::Cluster;
use crate::{ACKS, PACE};

/// Longer than an election and the life of a connection to the node, shorter than a catalogue lease.
const PAUSE: Duration = Duration::from_secs(4);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_node_may_be_paused_and_go_on() {
    let mut cluster = Cluster::of_regions().await;
    let load = Load::start(&cluster.endpoints(), PACE).await;
    for number in 0..cluster.members().len() {
        load.goes_on(ACKS).await;
        cluster.members()[number].pause();
        // sleep: the length of the pause is what is tested
        sleep(PAUSE).await;
        load.goes_on(ACKS).await;
        cluster.members()[number].resume();
        cluster.ready().await;
    }
    cluster.ends_well(load).await;
}

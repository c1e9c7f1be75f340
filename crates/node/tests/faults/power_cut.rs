//! All nodes are killed at once, as when a site loses power, and start again.

use sim::history::What;

use crate::audit::load::Load;
use crate::cluster::Cluster;
use crate::member::Member;
use crate::{ACKS, PACE};

/// How often.
const CUTS: usize = 2;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cluster_that_was_killed_starts_with_all_that_was_answered() {
    let mut cluster = Cluster::of_regions().await;
    let load = Load::start(&cluster.endpoints(), PACE).await;
    for _ in 0..CUTS {
        load.goes_on(ACKS).await;
        cluster.members().iter_mut().for_each(Member::kill);
        load.event(What::Down);
        cluster.members().iter_mut().for_each(Member::start);
        cluster.ready().await;
        load.event(What::Up);
    }
    cluster.ends_well(load).await;
}

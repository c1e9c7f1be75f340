//! Each node in turn is killed and comes back.

use crate::audit::load::Load;
use crate::cluster::Cluster;
use crate::{ACKS, PACE};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_node_may_be_killed_and_come_back() {
    let mut cluster = Cluster::of_regions().await;
    let load = Load::start(&cluster.endpoints(), PACE).await;
    for number in 0..cluster.members().len() {
        load.goes_on(ACKS).await;
        cluster.members()[number].kill();
        load.goes_on(ACKS).await;
        cluster.members()[number].start();
        cluster.ready().await;
    }
    cluster.ends_well(load).await;
}

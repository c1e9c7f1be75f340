//! Each node in turn is asked to end, and started again: an upgrade.

use crate::audit::load::Load;
use crate::cluster::Cluster;
use crate::{ACKS, PACE};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nodes_are_restarted_one_after_another() {
    let mut cluster = Cluster::of_regions().await;
    let load = Load::start(&cluster.endpoints(), PACE).await;
    for number in 0..cluster.members().len() {
        load.goes_on(ACKS).await;
        let status = cluster.members()[number].terminate();
        assert!(status.success(), "{status:?}");
        cluster.members()[number].start();
        cluster.ready().await;
    }
    cluster.ends_well(load).await;
}

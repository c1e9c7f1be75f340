//! A zone of a region is lost at once, with all of its nodes, and comes back. Other zones of the
//! region go on, for messages that stay in the region as for those that do not.

use crate::audit::load::Load;
use crate::cluster::Cluster;
use crate::{ACKS, PACE};

/// The nodes of the zone that is lost. One of them founded the cluster, and leads at first.
const LOST: [usize; 2] = [0, 1];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_zone_may_be_lost_and_come_back() {
    let mut cluster = Cluster::of_zones().await;
    let endpoints = cluster.endpoints();
    // Publishers begin at the first endpoints: all keys are at home where the zone is lost.
    let stays = Load::start_to_survive(&endpoints, PACE, "zone").await;
    let spreads = Load::start_to_survive(&endpoints, PACE, "region").await;
    goes_on([&stays, &spreads]).await;

    for number in LOST {
        cluster.members()[number].kill();
    }
    goes_on([&stays, &spreads]).await;
    for number in LOST {
        cluster.members()[number].start();
    }
    cluster.ready().await;
    goes_on([&stays, &spreads]).await;
    stays.ends_well().await;
    cluster.ends_well(spreads).await;
}

async fn goes_on(loads: [&Load; 2]) {
    for load in loads {
        load.goes_on(ACKS).await;
    }
}

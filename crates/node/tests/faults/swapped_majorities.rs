//! One of three nodes is paused while writes go on; then one of the two that wrote loses power, and
//! the other one is paused while the first goes on. What was answered is then known for sure only to
//! the node that lost power. Needs what [`crate::disk`] needs.

use crate::audit::load::Load;
use crate::cluster::Cluster;
use crate::disk::Disk;
use crate::{ACKS, PACE};

/// Say with this variable how often it is done; each round has the next node in each role.
const ROUNDS: &str = "ORDERLY_TEST_ROUNDS";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_answered_survives_a_swap_of_majorities() {
    let test = "swapped_majorities::what_was_answered_survives_a_swap_of_majorities";
    let disks: Option<Vec<Disk>> = (0..3).map(|_| Disk::new(test)).collect();
    let Some(disks) = disks else {
        return;
    };
    let on_disk = |number: usize, place: &mut crate::member::Place| {
        place.folder = disks[number].path().join("node");
    };
    let mut cluster = Cluster::of_regions_at(on_disk).await;
    let load = Load::start(&cluster.endpoints(), PACE).await;
    let rounds = std::env::var(ROUNDS).map_or(1, |rounds| rounds.parse().expect("a number"));
    for round in 0..rounds {
        let [first, swing, last] = [0, 1, 2].map(|role| (round + role) % 3);
        load.goes_on(ACKS).await;
        cluster.members()[first].pause();
        load.goes_on(ACKS).await;
        disks[swing].lose_power();
        cluster.members()[swing].kill_or_ended();
        disks[swing].restore();
        cluster.members()[last].pause();
        cluster.members()[first].resume();
        cluster.members()[swing].start();
        load.goes_on(ACKS).await;
        cluster.members()[last].resume();
        cluster.ready().await;
    }
    cluster.ends_well(load).await;
}

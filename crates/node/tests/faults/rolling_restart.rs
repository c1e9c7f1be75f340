//! Each node in turn is asked to end, and started again: an upgrade. Users hardly notice.

use std::time::Duration;

use crate::audit::load::Load;
use crate::cluster::Cluster;
use crate::unforgiving::{Figures, Unforgiving};

/// The pace of each publisher of the audit, which is not what weighs here.
const AUDIT_PACE: Duration = Duration::from_millis(100);
/// Acks of the audit between two restarts.
const ACKS: usize = 100;
/// Fewer than one publish in so many may fail. Drills ask for less than one in a thousand, and that
/// none takes a second; a test machine runs all nodes unoptimized, and other things too.
const FAILED_ONE_IN: usize = 200;
/// And none may take so long.
const PUBLISH_MAX: Duration = Duration::from_secs(3);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nodes_are_restarted_one_after_another() {
    let mut cluster = Cluster::of_regions().await;
    let endpoints = cluster.endpoints();
    let load = Load::start(&endpoints, AUDIT_PACE).await;
    let unforgiving = Unforgiving::start(&endpoints).await;
    for number in 0..cluster.members().len() {
        load.goes_on(ACKS).await;
        // It leads nothing any more when it has ended; otherwise this complains.
        let status = cluster.members()[number].terminate();
        assert!(status.success(), "{status:?}");
        cluster.members()[number].start();
        cluster.ready().await;
    }
    let figures = unforgiving.ends().await;
    eprintln!("a rolling restart: {figures}");
    cluster.ends_well(load).await;
    is_hardly_noticed(&figures);
}

fn is_hardly_noticed(figures: &Figures) {
    let failed = figures.failed.len();
    let published = figures.answered + failed;
    assert!(failed * FAILED_ONE_IN < published, "{figures}");
    assert!(figures.slowest < PUBLISH_MAX, "{figures}");
}

//! All nodes come back with new addresses, while their names still mean the old ones for a while.
//! Needs root, for a file of host names of the test's own.

use std::fs;
use std::io::{self, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::Value;
use tokio::time::{sleep, timeout};

use crate::audit::load::Load;
use crate::cluster::{Cluster, host};
use crate::member::Member;
use crate::{ACKS, PACE};

/// How long names mean old addresses.
const STALE: Duration = Duration::from_secs(5);
/// How long it may take from then until publishes are answered and delivered.
const SERVES_IN: Duration = Duration::from_secs(60);
/// Where the nodes are later: so much further on.
const MOVED_BY: usize = 100;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nodes_find_each_other_by_name_where_addresses_have_changed() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let names = folder.path().join("hosts");
    fs::write(&names, hosts(0)).expect("a temporary folder takes files");
    let runner = runner(&names);
    if !works(&runner) {
        let test = "new_addresses::nodes_find_each_other_by_name_where_addresses_have_changed";
        // Past the capture of output, so that the skip is counted.
        let mut out = io::stdout();
        writeln!(out, "skipped: {test}: no mount name spaces").expect("an output");
        return;
    }
    let mut cluster = Cluster::of_regions_at(|number, place| {
        place.peer_name = Some(name(number));
        place.runner = runner.clone();
    })
    .await;
    // Clients know both: only the nodes' names are what is tested.
    let old = cluster.endpoints();
    let new = (0..old.len()).map(|number| format!("{}:8085", host(number + MOVED_BY)));
    let endpoints: Vec<String> = old.iter().cloned().chain(new).collect();
    let load = Load::start(&endpoints, PACE).await;
    load.goes_on(ACKS).await;

    cluster.members().iter_mut().for_each(Member::kill);
    for (number, member) in cluster.members().iter_mut().enumerate() {
        member.move_to(host(number + MOVED_BY));
    }
    cluster.configure();
    cluster.members().iter_mut().for_each(Member::start);
    // sleep: how long the old addresses are told is part of the case
    sleep(STALE).await;
    fs::write(&names, hosts(MOVED_BY)).expect("a temporary folder takes files");
    let served = timeout(SERVES_IN, load.goes_on(ACKS)).await;
    served.expect("the cluster serves at its new addresses");
    cluster.ready().await;
    knows_new_addresses(&mut cluster).await;
    cluster.ends_well(load).await;
}

/// Waits until the cluster tells operators where clients reach its nodes now. How replicas are
/// compared rests on it.
async fn knows_new_addresses(cluster: &mut Cluster) {
    let told: Vec<String> = cluster.endpoints();
    let is_told = |node: &Value| told.iter().any(|at| node["clientAddress"] == at.as_str());
    let asked = &cluster.members()[0];
    let all_are = |nodes: &[Value]| nodes.iter().all(is_told);
    asked.sees("all at their new addresses", all_are).await;
}

/// What the nodes' names mean.
fn hosts(moved_by: usize) -> String {
    let lines = (0..3).map(|number| format!("{} {}\n", host(number + moved_by), name(number)));
    lines.collect()
}

fn name(number: usize) -> String {
    format!("node-{number}.orderly.test")
}

/// Runs a node so that it sees these names.
fn runner(names: &Path) -> Vec<String> {
    let script = format!(
        "mount --bind '{}' /etc/hosts && exec \"$@\"",
        names.display()
    );
    ["unshare", "--mount", "sh", "-c", &script, "sh"]
        .map(str::to_owned)
        .to_vec()
}

fn works(runner: &[String]) -> bool {
    let mut command = Command::new(&runner[0]);
    command.args(&runner[1..]).arg("true").stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

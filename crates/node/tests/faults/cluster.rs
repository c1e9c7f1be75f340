//! A cluster of real processes on loopback addresses of its own.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::future::join_all;
use tempfile::TempDir;
use tokio::time::{Instant, interval};

use crate::audit::load::Load;
use crate::audit::way::answers_well;
use crate::member::{Member, Place};

/// One cluster at a time: a test machine is small.
static TURN: Mutex<()> = Mutex::new(());
/// How long a cluster may take until all its nodes are ready, and its groups where they should be.
const READY_MAX: Duration = Duration::from_secs(120);
/// Between two looks at that.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// Names of regions.
const REGIONS: [&str; 3] = ["north", "south", "west"];
/// Milliseconds of a round trip between regions, emulated by the nodes, unless the environment says
/// otherwise.
const WAN_ROUND_TRIP_MS: u32 = 20;
/// The variable that does.
const WAN_ROUND_TRIP_VARIABLE: &str = "ORDERLY_WAN_ROUND_TRIP_MS";

/// A cluster. Its nodes end with it.
pub(crate) struct Cluster {
    members: Vec<Member>,
    /// Milliseconds between two regions and back.
    round_trip_ms: u32,
    _folder: TempDir,
    _turn: MutexGuard<'static, ()>,
}

impl Cluster {
    /// Three regions of one node each, ready. The nodes' numbers count from zero.
    pub(crate) async fn of_regions() -> Self {
        Cluster::of_regions_at(|_, _| {}).await
    }

    /// The same, whose nodes run where `change` puts them.
    pub(crate) async fn of_regions_at(change: impl Fn(usize, &mut Place)) -> Self {
        Cluster::start(&REGIONS, change, wan_round_trip_ms()).await
    }

    /// The same, with such a round trip between the regions.
    pub(crate) async fn of_regions_apart(round_trip_ms: u32) -> Self {
        Cluster::start(&REGIONS, |_, _| {}, round_trip_ms).await
    }

    /// Three regions, the first of which has three zones, and two nodes in its first zone: these are
    /// the first two.
    pub(crate) async fn of_zones() -> Self {
        let regions = [0, 0, 0, 0, 1, 2].map(|region| REGIONS[region]);
        let zones = ["a", "a", "b", "c", "a", "a"];
        let stand = |number: usize, place: &mut Place| zones[number].clone_into(&mut place.zone);
        Cluster::start(&regions, stand, wan_round_trip_ms()).await
    }

    /// One region of so many nodes, ready.
    pub(crate) async fn of_one_region(nodes: usize) -> Self {
        Cluster::start(&vec![REGIONS[0]; nodes], |_, _| {}, 0).await
    }

    /// A node for each of these regions.
    async fn start(
        regions: &[&str],
        change: impl Fn(usize, &mut Place),
        round_trip_ms: u32,
    ) -> Self {
        let turn = turn();
        let folder = tempfile::tempdir().expect("a temporary folder");
        let member = |(number, region): (usize, &&str)| {
            let name = format!("{region}-{number}");
            let mut place = Place {
                folder: folder.path().join(&name),
                zone: name.clone(),
                name,
                region: (*region).to_owned(),
                host: host(number),
                peer_name: None,
                runner: Vec::new(),
            };
            change(number, &mut place);
            Member::new(place)
        };
        let mut cluster = Cluster {
            members: regions.iter().enumerate().map(member).collect(),
            round_trip_ms,
            _folder: folder,
            _turn: turn,
        };
        cluster.configure();
        cluster.members[0].found();
        cluster.members.iter_mut().for_each(Member::start);
        cluster.ready().await;
        cluster
    }

    /// Writes the configurations of all nodes.
    pub(crate) fn configure(&self) {
        let peers: Vec<String> = self.members.iter().map(Member::peer_endpoint).collect();
        for member in &self.members {
            member.configure(&peers, self.round_trip_ms);
        }
    }

    /// Where clients connect, node by node.
    pub(crate) fn endpoints(&self) -> Vec<String> {
        self.members.iter().map(Member::endpoint).collect()
    }

    pub(crate) fn members(&mut self) -> &mut [Member] {
        &mut self.members
    }

    /// Waits until all nodes that run are ready, and the groups that they lead where they should be.
    pub(crate) async fn ready(&self) {
        let give_up = Instant::now() + READY_MAX;
        let mut look = interval(LOOK_EVERY);
        loop {
            look.tick().await;
            let running = self.members.iter().filter(|member| member.runs());
            let ready = join_all(running.map(is_ready)).await;
            let late: Vec<&str> = ready.into_iter().flatten().collect();
            if late.is_empty() {
                return;
            }
            assert!(Instant::now() < give_up, "not ready in time: {late:?}");
        }
    }

    /// Waits until all that the load has published is delivered, and judges; then compares what the
    /// nodes have of each group.
    pub(crate) async fn ends_well(&self, load: Load) {
        load.ends_well().await;
        self.replicas_are_alike().await;
    }

    /// Waits until the replicas of each group were found at the same entry. They must be alike.
    pub(crate) async fn replicas_are_alike(&self) {
        let asked = self.members.iter().find(|member| member.runs());
        let asked = asked.expect("a node runs");
        let verified = asked.operate(&["shards", "verify"]).await;
        verified.unwrap_or_else(|why| panic!("the nodes do not have the same: {why}"));
    }
}

/// Waits until no other cluster of these tests runs, and holds it so.
pub(crate) fn turn() -> MutexGuard<'static, ()> {
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

fn wan_round_trip_ms() -> u32 {
    let wished = std::env::var(WAN_ROUND_TRIP_VARIABLE);
    wished.map_or(WAN_ROUND_TRIP_MS, |text| {
        text.parse().expect("a number of milliseconds")
    })
}

/// Answers the name of a node that is not ready.
async fn is_ready(member: &Member) -> Option<&str> {
    let endpoint = member.endpoint();
    let is_ready = answers_well(&endpoint, "/readyz").await
        && answers_well(&endpoint, "/readyz/placement").await;
    (!is_ready).then_some(member.name())
}

/// An address of loopback that no other test has: the process's number is in it.
pub(crate) fn host(number: usize) -> String {
    let [.., high, low] = std::process::id().to_be_bytes();
    format!("127.{}.{low}.{}", 64 + high % 64, number + 1)
}

//! A simulated node: one process after another on one disk, each started as the binary does it.

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use model::{NodeId, NodeName, RegionName, Timestamp, ZoneName};
use node::start::{Chance, Environment, Node, Settings, StartError, Upkeep, init};
use replica::{Clock, Network};
use store::Limits;
use tokio::sync::oneshot;

use super::disk::Disk;
use super::moves::{self, Mover};
use super::network::Virtual;
use crate::chance;

/// Where clients connect.
pub(super) const CLIENT_PORT: u16 = 8_085;
/// Where other nodes connect.
pub(super) const PEER_PORT: u16 = 9_085;
/// Where operators connect.
pub(super) const ADMIN_PORT: u16 = 10_085;

/// The wall clock when a simulation begins: late in 2026.
const BEGINNING: Timestamp = Timestamp(1_795_000_000_000_000_000);

/// What nodes take the round trip between two regions for: what it is in a simulation.
const REGION_ROUND_TRIP: Duration = Duration::from_millis(80);

/// Registry groups of a simulated cluster, and shards of each region.
const REGISTRIES: u16 = 1;
const SHARDS: u16 = 1;

/// A node. Clones are the same.
#[derive(Clone)]
pub(super) struct Member(Arc<Inner>);

struct Inner {
    name: String,
    region: String,
    settings: Settings,
    seed: u64,
    disk: Disk,
    /// How far its wall clock is ahead, in nanoseconds.
    ahead: &'static AtomicI64,
    /// Whether it founds the cluster, and has not yet.
    founds: AtomicBool,
    /// How many processes it has had.
    lives: AtomicU64,
    /// Ends the present one in peace.
    stop: Mutex<Option<oneshot::Sender<()>>>,
    /// Why the last one ended by itself.
    ended: Mutex<Option<String>>,
    /// Whether the cluster did not let the last one in.
    refused: AtomicBool,
    /// What has the present process move keys.
    mover: Mover,
}

impl Member {
    /// A node that will found the cluster, or join it by way of the nodes of `join`. With an empty
    /// disk it joins in any case, once it has founded.
    pub(super) fn new(
        (name, region): (&str, &str),
        founds: bool,
        seed: u64,
        join: Vec<String>,
    ) -> Self {
        let everywhere = |port| ([0, 0, 0, 0], port).into();
        let settings = Settings {
            data_dir: name.into(),
            listen: everywhere(CLIENT_PORT),
            admin_listen: everywhere(ADMIN_PORT),
            shards: SHARDS,
            registries: REGISTRIES,
            upkeep: upkeep(),
            member: Some(node::start::Member {
                name: NodeName::parse(name).expect(GRAMMATICAL),
                region: RegionName::parse(region).expect(GRAMMATICAL),
                zone: ZoneName::parse(name).expect(GRAMMATICAL),
                client_address: format!("{name}:{CLIENT_PORT}"),
                peer_address: format!("{name}:{PEER_PORT}"),
                peer_listen: everywhere(PEER_PORT),
                join,
                wan_one_way: Duration::ZERO,
                region_round_trip: Some(REGION_ROUND_TRIP),
                tls: None,
            }),
            ..Settings::default()
        };
        Member(Arc::new(Inner {
            name: name.to_owned(),
            region: region.to_owned(),
            settings,
            seed,
            disk: Disk::new(FLUSH_EVERY),
            // A clock is copied everywhere, so what makes it jump stays to the end of the process.
            ahead: Box::leak(Box::default()),
            founds: AtomicBool::new(founds),
            lives: AtomicU64::new(0),
            stop: Mutex::default(),
            ended: Mutex::default(),
            refused: AtomicBool::new(false),
            mover: Mover::default(),
        }))
    }

    pub(super) fn name(&self) -> &str {
        &self.0.name
    }

    pub(super) fn region(&self) -> &str {
        &self.0.region
    }

    pub(super) fn disk(&self) -> &Disk {
        &self.0.disk
    }

    /// The node as the cluster numbers it, while it has a process.
    pub(super) fn id(&self) -> Option<NodeId> {
        let store = self.0.disk.store();
        store.map(|store| store.identity().node)
    }

    /// Whether the cluster did not let its last process in.
    pub(super) fn was_refused(&self) -> bool {
        self.0.refused.load(Ordering::Relaxed)
    }

    /// What has the present process move keys.
    pub(super) fn mover(&self) -> &Mover {
        &self.0.mover
    }

    /// Runs one process, from its start to its end.
    pub(super) async fn live(self) -> turmoil::Result {
        let inner = &self.0;
        inner.disk.end_process();
        inner.lives.fetch_add(1, Ordering::Relaxed);
        let (stop, stopping) = oneshot::channel::<()>();
        *inner.stop.lock().unwrap_or_else(PoisonError::into_inner) = Some(stop);
        let lived = self.run(stopping).await;
        let why = lived.err().unwrap_or_else(|| "it was told to stop".into());
        *inner.ended.lock().unwrap_or_else(PoisonError::into_inner) = Some(why);
        Ok(())
    }

    async fn run(&self, stopping: oneshot::Receiver<()>) -> Result<(), String> {
        let inner = &self.0;
        let environment = self.environment();
        if inner.founds.load(Ordering::Relaxed) {
            let founded = init(&inner.settings, &environment).await;
            founded.map_err(|error| error.to_string())?;
            inner.founds.store(false, Ordering::Relaxed);
            // To found is a process of its own.
            inner.disk.end_process();
        }
        let node = Node::start(inner.settings.clone(), environment).await;
        let is_refusal = matches!(node, Err(StartError::NotLetIn { .. }));
        inner.refused.store(is_refusal, Ordering::Relaxed);
        let node = node.map_err(|error| error.to_string())?;
        let (control, shards) = (node.replicas().control(), node.replicas().shards());
        let moved = moves::serve(control.clone(), shards.clone(), inner.mover.open());
        tokio::spawn(moved);
        let stop = async {
            if stopping.await.is_err() {
                std::future::pending::<()>().await;
            }
        };
        node.run(stop).await.map_err(|error| error.to_string())
    }

    /// Its wall clock jumps by so many nanoseconds.
    pub(super) fn jump(&self, by: i64) {
        self.0.ahead.fetch_add(by, Ordering::Relaxed);
    }

    /// Asks the present process to end in peace.
    pub(super) fn stop(&self) {
        let mut stop = self.0.stop.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(stop) = stop.take() {
            // One that is down has nobody to tell.
            let _ = stop.send(());
        }
    }

    /// Why the last process ended, if it has since this was asked.
    pub(super) fn ended(&self) -> Option<String> {
        let mut ended = self.0.ended.lock().unwrap_or_else(PoisonError::into_inner);
        ended.take()
    }

    fn environment(&self) -> Environment {
        let elapsed = turmoil::sim_elapsed().expect("nodes are hosts of the simulation");
        let life = self.0.lives.load(Ordering::Relaxed);
        let mut chance = chance::Chance::new(self.0.seed ^ life << 32);
        Environment {
            disk: self.0.disk.for_node(),
            network: Network::new(Virtual),
            clock: Clock::jumping(BEGINNING.plus(elapsed), self.0.ahead),
            chance: Chance::new(move |bytes| {
                bytes.fill_with(|| chance.below(256) as u8);
                Ok(())
            }),
        }
    }
}

/// Little is kept, so that replicas which were away need checkpoints, and reads need the disk.
fn upkeep() -> Upkeep {
    Upkeep {
        limits: Limits {
            log_cache_bytes: 16 * 1024,
            payload_cache_bytes: 16 * 1024,
            flush_bytes: 256 * 1024,
            purge_bytes: 4 * 1024,
            ..Limits::default()
        },
        cut_logs_every: Duration::from_millis(500),
        lag_max: 50,
    }
}

const GRAMMATICAL: &str = "it follows the grammar";
/// How often the state is flushed, and so how much a crash makes a node apply again.
const FLUSH_EVERY: Duration = Duration::from_millis(700);

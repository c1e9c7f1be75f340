//! Builds a node, one crate after another in the order of their dependencies, and runs it.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use engine::control::{Found, NewNode, read};
use frontend::ServeError;
use model::{ClusterSecret, NodeId, NodeName, RegionName, ZoneName};
use replica::{Clock, Replicas};
use router::Router;
use store::{Identity, OpenError, Start, Store};
use thiserror::Error;
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tracing::info;

/// Dead letters of this node's shards that wait for the router.
const DEAD_LETTERS_WAITING_MAX: usize = 256;

/// The registry groups of a cluster that this node founds: their number is for ever.
const REGISTRIES: u16 = 1;

/// How long a shutdown waits for the calls that are under way.
const DRAIN_MAX: Duration = Duration::from_secs(10);

/// What a node is told.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The data folder.
    pub data_dir: PathBuf,
    /// Where clients connect.
    pub listen: SocketAddr,
    /// The shards of a cluster that this node founds.
    pub shards: u16,
}

/// Why a node did not start, or stopped by itself.
#[derive(Debug, Error)]
pub enum StartError {
    /// The data folder can't be used.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The replicas did not start.
    #[error("the replicas in {folder} can't start: {source}", folder = .folder.display())]
    Replicas {
        /// The data folder.
        folder: PathBuf,
        /// Why.
        source: replica::StartError,
    },
    /// A replica stopped by itself.
    #[error("the node stops, since what it keeps in {folder} can't be relied on: {source}", folder = .folder.display())]
    Stopped {
        /// The data folder.
        folder: PathBuf,
        /// Why.
        source: replica::Stopped,
    },
    /// The address can't be listened on.
    #[error(
        "can't listen on {listen}: {source}; stop what uses it, or choose another with --listen"
    )]
    Listen {
        /// The address.
        listen: SocketAddr,
        /// Why.
        source: std::io::Error,
    },
    /// The listener failed.
    #[error("the listener failed: {0}")]
    Serve(#[from] ServeError),
    /// The operating system has no randomness for the secret of a new cluster.
    #[error("the operating system gives no random bytes: {0}")]
    Random(String),
}

/// A node at work.
pub struct Node {
    settings: Settings,
    replicas: Replicas,
    listener: TcpListener,
    router: Router,
}

impl Node {
    /// Starts a node on its own: what the data folder holds, or a new cluster of one node in an
    /// empty folder. When this returns, the node can serve.
    ///
    /// # Errors
    /// [`StartError`]
    pub async fn start(settings: Settings) -> Result<Node, StartError> {
        // First of all, so that a second node on the same port leaves the data alone.
        let listener = listen(settings.listen).await?;
        let clock = Clock::machine();
        let (store, is_new) = open_store(&settings)?;
        let replica_settings = replica::Settings::alone(store.identity().node);
        let failed = |source| StartError::Replicas {
            folder: settings.data_dir.clone(),
            source,
        };
        if is_new {
            found(&settings, replica_settings, &store, clock).await?;
        }
        let (forwards, dead_letters) = mpsc::channel(DEAD_LETTERS_WAITING_MAX);
        let node = store.identity().node;
        let replicas = Replicas::start(replica_settings, store, clock, forwards)
            .await
            .map_err(failed)?;
        for shard in replicas.shards().all().values() {
            // It fails only when a replica has stopped, which `run` reports.
            let _ = shard.serving().await;
        }
        let router = Router::new(
            node,
            secret(&replicas).map_err(failed)?,
            replicas.control().clone(),
            replicas.shards().clone(),
            clock.wall().0 / 1_000,
        );
        tokio::spawn(router.clone().forward_dead_letters(dead_letters));
        Ok(Node {
            settings,
            replicas,
            listener,
            router,
        })
    }

    /// The address that clients connect to.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.listener.local_addr().unwrap_or(self.settings.listen)
    }

    /// Serves until `stop` resolves, then drains: streams end, calls finish, the state is flushed.
    ///
    /// # Errors
    /// [`StartError`] when the node can't go on by itself.
    pub async fn run(mut self, stop: impl Future<Output = ()>) -> Result<(), StartError> {
        let (trigger, shutdown) = frontend::shutdown();
        let mut serving = tokio::spawn(frontend::serve(self.router, self.listener, shutdown));
        let ended = tokio::select! {
            () = stop => Ok(()),
            source = self.replicas.stopped() => Err(StartError::Stopped {
                folder: self.settings.data_dir.clone(),
                source,
            }),
            served = &mut serving => Err(joined(served).err().unwrap_or_else(|| {
                unreachable!("the listener ends by itself only with an error")
            })),
        };
        trigger.begin();
        info!("draining");
        if !serving.is_finished() && tokio::time::timeout(DRAIN_MAX, &mut serving).await.is_err() {
            info!("calls were cut off: they took longer than {DRAIN_MAX:?}");
            serving.abort();
        }
        self.replicas.shutdown().await;
        ended
    }
}

async fn listen(listen: SocketAddr) -> Result<TcpListener, StartError> {
    TcpListener::bind(listen)
        .await
        .map_err(|source| StartError::Listen { listen, source })
}

/// Opens the data folder; also tells whether it was empty and is now a new node's.
fn open_store(settings: &Settings) -> Result<(Store, bool), StartError> {
    let folder = |start| store::Settings {
        folder: settings.data_dir.clone(),
        start,
        marks: store::DiskMarks::default(),
        limits: store::Limits::default(),
    };
    match Store::open(folder(Start::Existing)) {
        Ok(store) => Ok((store, false)),
        Err(OpenError::Empty { .. }) => {
            let cluster = format!("{:032x}", u128::from_be_bytes(random_bytes()?));
            let identity = Identity {
                cluster,
                node: NodeId(1),
            };
            Ok((Store::open(folder(Start::New(identity)))?, true))
        }
        Err(other) => Err(other.into()),
    }
}

/// Founds a cluster of this one node.
async fn found(
    settings: &Settings,
    replica_settings: replica::Settings,
    store: &Store,
    clock: Clock,
) -> Result<(), StartError> {
    let found = Found {
        secret: ClusterSecret(random_bytes()?),
        cluster: store.identity().cluster.clone(),
        node: alone(settings.listen, random_bytes()?),
        shards_per_region: settings.shards,
        registries: REGISTRIES,
    };
    let founded = Replicas::found(replica_settings, store, clock, found).await;
    founded.map_err(|source| StartError::Replicas {
        folder: settings.data_dir.clone(),
        source,
    })?;
    info!(folder = %settings.data_dir.display(), "founded a new cluster of one node");
    Ok(())
}

/// A node on its own, which no other one has to reach.
fn alone(listen: SocketAddr, join: [u8; 16]) -> NewNode {
    let name = "local";
    NewNode {
        name: NodeName::parse(name).expect("it follows the grammar"),
        region: RegionName::parse(name).expect("it follows the grammar"),
        zone: ZoneName::parse(name).expect("it follows the grammar"),
        peer_address: String::new(),
        client_address: listen.to_string(),
        join,
    }
}

fn secret(replicas: &Replicas) -> Result<ClusterSecret, replica::StartError> {
    let cluster = read::cluster(replicas.control().view())?;
    cluster
        .map(|cluster| cluster.secret)
        .ok_or(replica::StartError::NotFounded)
}

fn random_bytes() -> Result<[u8; 16], StartError> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(|why| StartError::Random(why.to_string()))?;
    Ok(bytes)
}

fn joined(
    served: Result<Result<(), ServeError>, tokio::task::JoinError>,
) -> Result<(), StartError> {
    match served {
        Ok(served) => Ok(served?),
        Err(panicked) => std::panic::resume_unwind(panicked.into_panic()),
    }
}

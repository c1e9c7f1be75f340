//! Builds a node, one crate after another in the order of their dependencies, and runs it.
//!
//! - `address`: where it is reached, as the cluster knows.
//! - `settings`: what a node is told; `environment`: what it finds around it.
//! - `found`: the birth of a cluster.
//! - `identity`: whose data folder it is, against what it is told.
//! - `join`: how a node becomes a member of one.
//! - `listeners`: where it listens, and for whom.
//! - `silence`: says which other nodes can't be reached.
//! - `tls`: its certificates.

mod address;
mod environment;
mod found;
mod identity;
mod join;
mod listeners;
mod settings;
mod silence;
mod tls;

pub use environment::{Chance, Disk, Environment};
pub use found::init;
pub(crate) use settings::{ADMIN_PORTS_ABOVE, admin_beside};
pub use settings::{Member, Settings, Upkeep};
pub(crate) use tls::{of_node as read_tls_of, read_files as read_tls};

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use frontend::ServeError;
use futures::FutureExt;
use model::{NodeId, NodeName, RegionName};
use replica::network::{Listener, Network};
use replica::{Peers, Replicas, peer};
use router::Router;
use store::{Identity, OpenError, Start, Store};
use thiserror::Error;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tracing::{info, warn};

use listeners::{Inside, Listeners};

/// Dead letters of this node's shards that wait for the router.
const DEAD_LETTERS_WAITING_MAX: usize = 256;

/// How long a node that is about to stop still takes calls, so that load balancers can notice.
const NOTICE: Duration = Duration::from_secs(1);
/// How long a shutdown waits for others to take its leaderships, one after another.
const HAND_OVER_MAX: Duration = Duration::from_secs(10);
/// How long it waits for that at its very end.
const HAND_OVER_AGAIN_MAX: Duration = Duration::from_secs(3);
/// How long a shutdown waits for the calls that are under way.
const DRAIN_MAX: Duration = Duration::from_secs(10);

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
    #[error("can't listen on {listen}: {source}; stop what uses it, or choose another {option}")]
    Listen {
        /// The address.
        listen: SocketAddr,
        /// What sets it, on the command line and in a configuration.
        option: &'static str,
        /// Why.
        source: std::io::Error,
    },
    /// The listener failed.
    #[error("the listener failed: {0}")]
    Serve(#[from] ServeError),
    /// The folder is empty, and there is no cluster to join.
    #[error(
        "{folder} is empty and \"join\" names no node: found a cluster with \"orderly init\", or \
         name a node of the cluster to join", folder = .folder.display()
    )]
    NoCluster {
        /// The data folder.
        folder: PathBuf,
    },
    /// The data folder is that of a node, which founds no other cluster.
    #[error(
        "{folder} holds a node of a cluster already: start it with \"orderly serve --config FILE\", or \
         name an empty folder to found another", folder = .folder.display()
    )]
    Founded {
        /// The data folder.
        folder: PathBuf,
    },
    /// The data folder is another node's than the settings say.
    #[error(
        "{folder} is the folder of node \"{name}\" in region \"{region}\": say so in the file, or \
         choose another folder", folder = .folder.display()
    )]
    FolderOf {
        /// The data folder.
        folder: PathBuf,
        /// Whose it is.
        name: NodeName,
        /// Where that node is.
        region: RegionName,
    },
    /// The data folder is that of a node that has a configuration, and the settings have none.
    #[error(
        "{folder} is the folder of node \"{name}\", which has a configuration: start it with \
         \"orderly serve --config FILE\"", folder = .folder.display()
    )]
    Configured {
        /// The data folder.
        folder: PathBuf,
        /// Whose it is.
        name: NodeName,
    },
    /// The cluster has sent this node away.
    #[error(
        "this node was removed from the cluster, for good; to let this machine join as a new node, \
         empty {folder} and start it again", folder = .folder.display()
    )]
    Removed {
        /// The data folder.
        folder: PathBuf,
    },
    /// The cluster does not let this node in.
    #[error("the cluster does not let this node in: {why}")]
    NotLetIn {
        /// Why, as the cluster says.
        why: String,
    },
    /// A file of the node's certificates can't be read.
    #[error(
        "{file} \"{path}\" can't be read: {source}; \"orderly certificates\" makes such files",
        path = .path.display()
    )]
    Certificate {
        /// Which.
        file: &'static str,
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The node's certificates can't be used.
    #[error("{file} \"{path}\": {source}", path = .path.display())]
    Tls {
        /// Which of them.
        file: &'static str,
        /// The file.
        path: PathBuf,
        /// Why.
        source: peer::InvalidTls,
    },
    /// The certificate is another node's.
    #[error("the certificate names node \"{named}\", but this is node \"{name}\"")]
    OtherNode {
        /// The node that it names.
        named: NodeName,
        /// This node.
        name: NodeName,
    },
    /// The certificate is for another cluster.
    #[error("the certificate is for cluster {named}, but this node is of cluster {cluster}")]
    OtherCluster {
        /// The cluster that it names.
        named: String,
        /// The cluster of this node.
        cluster: String,
    },
    /// There is no randomness for the secret of a new cluster.
    #[error("no random bytes come from {0}")]
    Random(String),
}

/// A node at work.
pub struct Node {
    settings: Settings,
    node: NodeId,
    replicas: Replicas,
    listener: Listener,
    router: Router,
    inside: Inside,
    /// What it tells the cluster, and its operators, by itself.
    telling: JoinSet<()>,
}

impl Node {
    /// Starts a node: what the data folder holds; in an empty folder a new member of the cluster
    /// that the settings name, or, where they name none, a new cluster of one node. When this
    /// returns, the node can serve.
    ///
    /// # Errors
    /// [`StartError`]
    pub async fn start(settings: Settings, environment: Environment) -> Result<Node, StartError> {
        // First of all, so that a second node on the same port leaves the data alone.
        let Environment { network, clock, .. } = environment.clone();
        let listeners = Listeners::bind(&settings, &network).await?;
        let tls = tls::load(&settings)?;
        let (store, is_new) = open_store(&settings, &environment, tls.as_ref()).await?;
        identity::check(&settings, &store)?;
        if is_new {
            found::found(&settings, &environment, &store).await?;
        }
        let failed = |source| StartError::Replicas {
            folder: settings.data_dir.clone(),
            source,
        };
        let (forwards, dead_letters) = mpsc::channel(DEAD_LETTERS_WAITING_MAX);
        let node = store.identity().node;
        let peers = peers(&settings, network, &store, tls.clone())?;
        let mut telling = JoinSet::new();
        telling.spawn(silence::tell(peers.clone()));
        let replica_settings = replica_settings(&settings, node);
        let replicas = match settings.member {
            None => Replicas::start(replica_settings, store, clock, forwards).await,
            Some(_) => {
                let peers = peers.clone();
                Replicas::start_among(peers, replica_settings, store, clock, forwards).await
            }
        };
        let replicas = replicas.map_err(failed)?;
        let (listener, inside) = listeners.serve_inside(&replicas, peers, tls);
        let cluster = replicas.control().cluster().await.map_err(failed)?;
        if replicas.removed().now_or_never().is_some() {
            let folder = settings.data_dir.clone();
            return Err(StartError::Removed { folder });
        }
        if settings.member.is_none() {
            for shard in replicas.shards().all().values() {
                // It fails only when a replica has stopped, which `run` reports.
                let _ = shard.serving().await;
            }
        }
        let router = Router::new(
            node,
            cluster.secret,
            replicas.control().clone(),
            replicas.shards().clone(),
            replicas.sessions().clone(),
        );
        tokio::spawn(router.clone().forward_dead_letters(dead_letters));
        Ok(Node {
            settings,
            node,
            replicas,
            listener,
            router,
            inside,
            telling,
        })
    }

    /// The address that clients connect to.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.listener.address()
    }

    /// The replicas of the node.
    #[must_use]
    pub fn replicas(&self) -> &Replicas {
        &self.replicas
    }

    /// Serves until `stop` resolves, then drains: streams end, calls finish, the state is flushed.
    ///
    /// # Errors
    /// [`StartError`] when the node can't go on by itself.
    pub async fn run(mut self, stop: impl Future<Output = ()>) -> Result<(), StartError> {
        let (trigger, shutdown) = frontend::shutdown();
        let health = self.replicas.health().clone();
        let mut serving = tokio::spawn(frontend::serve(
            self.router,
            health.clone(),
            self.replicas.metrics().clone(),
            self.listener,
            shutdown,
        ));
        let mut telling = self.telling;
        if let Some(member) = self.settings.member.clone() {
            let control = self.replicas.control().clone();
            telling.spawn(address::tell(control, self.node, member));
        }
        let removed = self.replicas.removed();
        let ended = tokio::select! {
            () = stop => Ok(()),
            () = removed => {
                warn!("this node was removed from the cluster: it stops");
                Ok(())
            }
            source = self.replicas.stopped() => Err(StartError::Stopped {
                folder: self.settings.data_dir.clone(),
                source,
            }),
            served = &mut serving => Err(joined(served).err().unwrap_or_else(|| {
                unreachable!("the listener ends by itself only with an error")
            })),
        };
        drop(telling);
        health.begin_drain();
        info!("draining");
        if self.settings.member.is_some() {
            // What others can lead they lead before clients hear that this node goes.
            let noticed = tokio::time::sleep(NOTICE);
            let handed = self.replicas.hand_over(HAND_OVER_MAX);
            let (handed, ()) = tokio::join!(handed, noticed);
            if let Err(stopped) = handed {
                info!(%stopped, "not all leaderships were handed over");
            }
        }
        trigger.begin();
        if !serving.is_finished() && tokio::time::timeout(DRAIN_MAX, &mut serving).await.is_err() {
            info!("calls were cut off: they took longer than {DRAIN_MAX:?}");
            serving.abort();
        }
        if self.settings.member.is_some() {
            // It may have been elected again meanwhile.
            let handed = self.replicas.hand_over(HAND_OVER_AGAIN_MAX).await;
            handed.unwrap_or_else(|stopped| info!(%stopped, "leaderships were not handed over"));
        }
        self.replicas.shutdown().await;
        // Other nodes are answered to the end: they may need what this one has.
        self.inside.close().await;
        ended
    }
}

/// Opens the data folder. An empty one becomes that of a new node: of a cluster of its own, or of
/// the cluster that the settings name. Also tells whether a cluster is to be founded.
async fn open_store(
    settings: &Settings,
    environment: &Environment,
    tls: Option<&peer::Tls>,
) -> Result<(Store, bool), StartError> {
    let existing = store_settings(settings, Start::Existing);
    match (environment.disk.open(existing), &settings.member) {
        (Ok(store), _) => Ok((store, false)),
        (Err(OpenError::Empty { .. }), None) => {
            Ok((found::new_store(settings, environment, None)?, true))
        }
        (Err(OpenError::Empty { .. }), Some(member)) if member.join.is_empty() => {
            Err(StartError::NoCluster {
                folder: settings.data_dir.clone(),
            })
        }
        (Err(OpenError::Empty { .. }), Some(member)) => {
            let joined = join::join_cluster(settings, member, environment, tls);
            Ok((joined.await?, false))
        }
        (Err(other), _) => Err(other.into()),
    }
}

fn store_settings(settings: &Settings, start: Start) -> store::Settings {
    store::Settings {
        limits: settings.upkeep.limits,
        ..store::Settings::new(settings.data_dir.clone(), start)
    }
}

/// A node alone need not look out for others, so its groups tick slowly.
fn replica_settings(settings: &Settings, node: NodeId) -> replica::Settings {
    let of_class = match &settings.member {
        None => replica::Settings::alone(node),
        Some(member) => match member.region_round_trip {
            Some(round_trip) => replica::Settings::of_distant_regions(node, round_trip),
            None => replica::Settings::of_regions(node),
        },
    };
    replica::Settings {
        cut_log_every: settings.upkeep.cut_logs_every,
        lag_max: settings.upkeep.lag_max,
        replace_after: settings.replace_after,
        ..of_class
    }
}

/// What this node tells others of itself.
fn peers(
    settings: &Settings,
    network: Network,
    store: &Store,
    tls: Option<peer::Tls>,
) -> Result<Peers, StartError> {
    let Identity { cluster, node, .. } = store.identity().clone();
    let Some(member) = &settings.member else {
        return Ok(Peers::none(node));
    };
    if let Some(tls) = tls.as_ref().filter(|tls| tls.cluster() != cluster) {
        let named = tls.cluster().to_owned();
        return Err(StartError::OtherCluster { named, cluster });
    }
    Ok(Peers::new(peer::Settings {
        cluster,
        node,
        region: member.region.clone(),
        wan_one_way: (!member.wan_one_way.is_zero()).then_some(member.wan_one_way),
        tls,
        network,
    }))
}

fn joined(
    served: Result<Result<(), ServeError>, tokio::task::JoinError>,
) -> Result<(), StartError> {
    match served {
        Ok(served) => Ok(served?),
        Err(panicked) => std::panic::resume_unwind(panicked.into_panic()),
    }
}

//! Where a node listens: for clients, for operators, and for other nodes.

use std::net::SocketAddr;

use replica::network::{Listener, Network};
use replica::peer::{self, ServeError, Tls};
use replica::{Peers, Replicas};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::{Settings, StartError};
use crate::admin::AdminService;

/// Listeners that nobody serves yet.
pub(super) struct Listeners {
    pub(super) clients: Listener,
    operators: Listener,
    /// Where there are other nodes.
    nodes: Option<Listener>,
}

/// The listeners for operators and nodes, served.
pub(super) struct Inside {
    served: Vec<JoinHandle<Result<(), ServeError>>>,
    /// Closes them when it is dropped.
    close: watch::Sender<()>,
}

impl Listeners {
    /// Listens everywhere, so that a second node on the same ports gets no further.
    ///
    /// # Errors
    /// [`StartError::Listen`].
    pub(super) async fn bind(settings: &Settings, network: &Network) -> Result<Self, StartError> {
        Ok(Listeners {
            clients: listen(network, settings.listen, "--listen").await?,
            operators: listen(network, settings.admin_listen, "--admin-listen").await?,
            nodes: match &settings.member {
                Some(member) => Some(listen(network, member.peer_listen, "peer_listen").await?),
                None => None,
            },
        })
    }

    /// Serves operators and nodes; clients have to wait until the node can do what they ask.
    pub(super) fn serve_inside(
        self,
        replicas: &Replicas,
        peers: Peers,
        tls: Option<Tls>,
    ) -> (Listener, Inside) {
        let (close, closed) = watch::channel(());
        // Whoever is on this machine could as well stop the process: it need not prove who it is.
        let tls = tls.filter(|_| !self.operators.address().ip().is_loopback());
        let operators = peer::serve_open(
            self.operators,
            AdminService::routes(replicas),
            tls,
            closing(closed.clone()),
        );
        let nodes = self.nodes.map(|listener| {
            let (routes, open) = (replicas.routes(), replicas.open_routes());
            peer::serve(listener, routes, open, peers, closing(closed))
        });
        let served = std::iter::once(tokio::spawn(operators)).chain(nodes.map(tokio::spawn));
        let served = served.collect();
        (self.clients, Inside { served, close })
    }
}

impl Inside {
    /// Answers who has asked, and ends.
    pub(super) async fn close(self) {
        drop(self.close);
        for listener in self.served {
            // What went wrong there is over with the node.
            let _ = listener.await;
        }
    }
}

async fn listen(
    network: &Network,
    listen: SocketAddr,
    option: &'static str,
) -> Result<Listener, StartError> {
    let failed = |source| StartError::Listen {
        listen,
        option,
        source,
    };
    network.listen(listen).await.map_err(failed)
}

/// Resolves when the other end is gone.
async fn closing(mut closed: watch::Receiver<()>) {
    let _ = closed.changed().await;
}

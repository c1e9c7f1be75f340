//! The handle to a shard's task on this node.

use std::fmt;

use engine::shard;
use model::{NodeId, ShardNumber};
use tokio::sync::{mpsc, oneshot, watch};

use super::request::Request;
use crate::raft::Core;

/// A shard with a replica on this node. It serves while this node leads. Cheap to clone.
#[derive(Clone)]
pub(crate) struct LocalShard {
    shard: ShardNumber,
    core: Core,
    requests: mpsc::Sender<Request>,
    serving: watch::Receiver<bool>,
}

/// A change of the catalogue on its way into a shard's log.
pub(crate) struct CatalogueLogged(oneshot::Receiver<()>);

impl LocalShard {
    pub(super) fn new(
        shard: ShardNumber,
        core: Core,
        requests: mpsc::Sender<Request>,
        serving: watch::Receiver<bool>,
    ) -> Self {
        LocalShard {
            shard,
            core,
            requests,
            serving,
        }
    }

    /// The shard's number.
    pub(crate) fn shard(&self) -> ShardNumber {
        self.shard
    }

    /// Whether calls are taken here now.
    pub(super) fn serves(&self) -> bool {
        *self.serving.borrow()
    }

    /// Whether calls are taken here now, or as soon as this node, which is elected, serves.
    pub(super) fn takes_calls(&self) -> bool {
        self.serves() || self.core.leader() == Some(self.core.node())
    }

    /// Whether no call will ever be taken here again: the node shuts down.
    pub(super) fn is_closed(&self) -> bool {
        self.requests.is_closed()
    }

    /// Who leads, as this replica knows.
    pub(super) fn leader(&self) -> Option<NodeId> {
        self.core.leader()
    }

    /// Waits until this node begins to serve or ceases to, or the replica hears of another leader.
    pub(super) async fn news(&self) {
        let mut serving = self.serving.clone();
        let before = *serving.borrow();
        let changes = async {
            if serving.wait_for(|now| *now != before).await.is_err() {
                // The task is gone: it never serves again.
                std::future::pending::<()>().await;
            }
        };
        tokio::select! {
            () = changes => {}
            () = self.core.leader_changes() => {}
        }
    }

    /// Where calls go.
    pub(super) fn requests(&self) -> &mpsc::Sender<Request> {
        &self.requests
    }

    /// Puts a change of the catalogue (Attach, Detach or CloseTopic) into the shard's log, ahead of
    /// any publish that is called after this returns. The answer comes when it is applied.
    ///
    /// Where the shard has no leader now, the next one finds the change in the catalogue itself.
    pub(crate) async fn log_catalogue(&self, command: shard::Command) -> CatalogueLogged {
        let (answer, answered) = oneshot::channel();
        // A request that can't be sent drops its answer, which is seen below.
        let _ = self
            .requests
            .send(Request::Catalogue { command, answer })
            .await;
        CatalogueLogged(answered)
    }

    /// Puts whatever the catalogue has and the shard lacks into its log, as
    /// [`LocalShard::log_catalogue`] does with one change.
    pub(crate) async fn compare_catalogue(&self) -> CatalogueLogged {
        let (answer, answered) = oneshot::channel();
        let _ = self
            .requests
            .send(Request::CompareCatalogue { answer })
            .await;
        CatalogueLogged(answered)
    }
}

impl CatalogueLogged {
    /// Waits until the change stands in the log ahead of any later publish, or no leader is here
    /// that could take one: the next compares its log with the catalogue before it serves.
    pub(crate) async fn wait(self) {
        let _ = self.0.await;
    }
}

impl fmt::Debug for LocalShard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "shard {} here", self.shard)
    }
}

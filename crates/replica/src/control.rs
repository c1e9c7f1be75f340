//! The handle to the control group: the catalogue, to be read and changed.

use engine::control::{Command, Reply};
use model::NodeId;
use store::StateView;
use tokio::sync::{mpsc, oneshot, watch};

use crate::Unavailable;
use crate::catalogue::Change;
use crate::raft::Core;

/// The control group on this node. Cheap to clone.
#[derive(Clone)]
pub struct ControlClient {
    core: Core,
    changes: mpsc::Sender<Change>,
}

impl ControlClient {
    pub(crate) fn new(core: Core, changes: mpsc::Sender<Change>) -> Self {
        ControlClient { core, changes }
    }

    pub(crate) fn core(&self) -> &Core {
        &self.core
    }

    /// Carries a command out, and answers when every shard's leader has put what follows from it
    /// in its log, ahead of any later publish.
    ///
    /// # Errors
    /// [`Unavailable`].
    pub async fn propose(&self, command: Command) -> Result<Reply, Unavailable> {
        let (answer, answered) = oneshot::channel();
        let sent = self.changes.send(Change { command, answer }).await;
        sent.map_err(|_| Unavailable::NOT_DONE)?;
        answered.await.map_err(|_| Unavailable::UNKNOWN)?
    }

    /// The catalogue, not older than anything that was answered before this call, on any node.
    ///
    /// # Errors
    /// [`Unavailable`].
    pub async fn read(&self) -> Result<&StateView, Unavailable> {
        match self.core.read().await {
            Ok(()) => Ok(self.core.view()),
            Err(_) => Err(Unavailable::NOT_DONE),
        }
    }

    /// The catalogue as this node has it now, perhaps behind others.
    #[must_use]
    pub fn view(&self) -> &StateView {
        self.core.view()
    }

    /// The node that leads the control group, as far as this one knows.
    #[must_use]
    pub fn leader(&self) -> Option<NodeId> {
        self.core.leader()
    }

    /// The index of the last entry that this node's catalogue has applied, and its changes.
    #[must_use]
    pub fn applied(&self) -> watch::Receiver<Option<store::Position>> {
        self.core.applied()
    }
}

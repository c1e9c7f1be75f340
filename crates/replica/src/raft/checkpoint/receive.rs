//! A group's state on its way in, beside the one that is valid until all of it is here.

use std::time::Duration;

use futures::{Stream, StreamExt};
use openraft::alias::{SnapshotMetaOf, SnapshotOf};
use openraft::async_runtime::WatchReceiver;
use proto::cluster;
use store::{Applied, Install, InstallError, Sealed, Store};
use tokio::time::timeout;
use tracing::{info, warn};

use super::super::entry::{at, membership_from_store};
use super::super::network::{Unanswered, wire};
use super::super::{Core, Types, Vote};
use super::Checkpoint;
use crate::aside::aside;

/// A leader that sends nothing for so long has given up, or must: it keeps others from sending.
const CHUNK_WAIT_MAX: Duration = Duration::from_secs(30);

impl Core {
    /// Takes a checkpoint in, and answers when it is this replica's state, or is not needed.
    pub(crate) async fn install(
        &self,
        mut chunks: impl Stream<Item = cluster::CheckpointChunk> + Unpin,
    ) -> Result<cluster::InstallReply, Unanswered> {
        let first = next(&mut chunks).await?.ok_or(Unanswered::Malformed)?;
        let leader = first.head.and_then(|head| head.leader);
        let leader = wire::to_vote(leader.ok_or(Unanswered::Malformed)?);
        let own = self.raft().server_metrics().borrow_watched().vote;
        if own > leader {
            return Ok(reply(&own));
        }
        let group = self.group();
        let install = match self.store().install(group, &first.rows) {
            Ok(install) => install,
            Err(InstallError::NotNewer { .. }) => {
                let applied = self.store().applied(group);
                let applied = applied.map_err(|fault| not_installed(&fault))?;
                let applied = applied.ok_or(Unanswered::Malformed)?;
                return self.hand_over(leader, &applied, Checkpoint::Needless).await;
            }
            Err(refused) => return Err(not_installed(&refused)),
        };
        info!(%group, index = install.applied().at.index, "takes a checkpoint in");
        let sealed = fill(self.store(), install, &mut chunks).await;
        let sealed = sealed.inspect_err(|why| warn!(%group, ?why, "the checkpoint is given up"))?;
        let applied = sealed.applied().clone();
        self.hand_over(leader, &applied, Checkpoint::Arrived(sealed))
            .await
    }

    /// Lets Raft decide whether the checkpoint counts: another leader may have come meanwhile, or
    /// the entries themselves.
    async fn hand_over(
        &self,
        leader: Vote,
        applied: &Applied,
        checkpoint: Checkpoint,
    ) -> Result<cluster::InstallReply, Unanswered> {
        let membership = membership_from_store(&applied.note);
        let snapshot = SnapshotOf::<Types, Checkpoint> {
            meta: SnapshotMetaOf::<Types> {
                last_log_id: Some(at(applied.at)),
                last_membership: membership.map_err(|error| not_installed(&error))?,
            },
            snapshot: checkpoint,
        };
        let response = self.raft().install_full_snapshot(leader, snapshot).await;
        let response = response.map_err(|fatal| Unanswered::Stopped(self.stopped(fatal)))?;
        Ok(reply(&response.vote))
    }
}

/// Takes in what comes, to the end.
async fn fill(
    store: &Store,
    mut install: Install,
    chunks: &mut (impl Stream<Item = cluster::CheckpointChunk> + Unpin),
) -> Result<Sealed, Unanswered> {
    while let Some(chunk) = next(chunks).await? {
        install = working(store, move || {
            install.add(&chunk.rows)?;
            Ok(install)
        })
        .await?;
    }
    working(store, move || install.seal()).await
}

async fn next(
    chunks: &mut (impl Stream<Item = cluster::CheckpointChunk> + Unpin),
) -> Result<Option<cluster::CheckpointChunk>, Unanswered> {
    let chunk = timeout(CHUNK_WAIT_MAX, chunks.next()).await;
    chunk.map_err(|_| not_installed(&"the leader sends nothing more"))
}

/// Does what waits for the disk.
async fn working<T: Send + 'static>(
    store: &Store,
    work: impl FnOnce() -> Result<T, InstallError> + Send + 'static,
) -> Result<T, Unanswered> {
    let done = aside(store, work).await;
    let done = done.map_err(|panic| not_installed(&panic))?;
    done.map_err(|error| not_installed(&error))
}

fn reply(vote: &Vote) -> cluster::InstallReply {
    cluster::InstallReply {
        ballot: Some(wire::ballot(vote)),
    }
}

fn not_installed(why: &dyn ToString) -> Unanswered {
    Unanswered::NotInstalled(why.to_string())
}

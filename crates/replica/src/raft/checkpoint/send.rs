//! A group's state on its way to another node. It is read while it is sent, as it was when that
//! began, and nothing of it is kept in memory but a chunk or two.

use std::future::Future;
use std::sync::Arc;

use bytes::Bytes;
use engine::Fault;
use engine::table::run::referred_payload;
use futures::stream::BoxStream;
use futures::{Stream, StreamExt, stream};
use model::GroupId;
use openraft::StorageError;
use openraft::errors::{ErrorSource, ReplicationClosed, StreamingError};
use openraft::impls::BoxedErrorSource;
use openraft::network::RPCOption;
use openraft::raft::SnapshotResponse;
use proto::cluster;
use store::Store;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};
use tokio::task::spawn_blocking;
use tokio::time::{Instant, timeout};
use tokio_stream::wrappers::ReceiverStream;
use tracing::info;

use super::super::network::{Link, unreachable, wire};
use super::super::{LogId, Types, Vote};

/// Checkpoints that a node sends at once, over all groups. Each reads the disk as fast as the
/// other node takes it in.
const EXPORTS_MAX: usize = 2;

/// The checkpoints that this node sends. Clones are the same.
#[derive(Clone)]
pub(crate) struct Exports(Arc<Semaphore>);

type Sent = Result<SnapshotResponse<Types>, StreamingError<Types>>;

impl Default for Exports {
    fn default() -> Self {
        Exports(Arc::new(Semaphore::new(EXPORTS_MAX)))
    }
}

impl Link {
    /// Sends the group's state, which has applied `at` at least, until it is the other replica's.
    pub(in crate::raft) async fn send_checkpoint(
        &self,
        leader: Vote,
        at: &LogId,
        cancel: impl Future<Output = ReplicationClosed>,
        option: RPCOption,
    ) -> Sent {
        let network = &self.network;
        let Ok(turn) = network.exports.0.clone().try_acquire_owned() else {
            return Err(unreachable(&"this node sends checkpoints to others now").into());
        };
        let _hold = network.holds.hold(at.index);
        let since = Instant::now();
        let sent = timeout(option.hard_ttl(), self.stream(leader, turn));
        let sent = tokio::select! {
            closed = cancel => return Err(closed.into()),
            sent = sent => sent.unwrap_or_else(|_| {
                Err(unreachable(&"the checkpoint did not arrive in time").into())
            }),
        };
        if sent.is_ok() {
            let (group, to, took) = (network.group, self.target, since.elapsed());
            info!(%group, %to, index = at.index, ?took, "a checkpoint has arrived");
        }
        sent
    }

    async fn stream(&self, leader: Vote, turn: OwnedSemaphorePermit) -> Sent {
        let mut client = self.client()?;
        let (rows, mut fault) = read(&self.network.store, self.network.group, turn);
        let head = cluster::CheckpointHead {
            group: self.network.group.to_number(),
            leader: Some(wire::ballot(&leader)),
        };
        let reply = client.install_checkpoint(chunks(head, rows)).await;
        if let Ok(fault) = fault.try_recv() {
            // The state on this node can't be read: its replica must stop.
            let fault = BoxedErrorSource::from_error(&fault);
            return Err(StorageError::read_snapshot(None, fault).into());
        }
        let reply = reply.map_err(|status| unreachable(&status))?.into_inner();
        let vote = reply.ballot.map(wire::to_vote);
        let vote = vote.ok_or_else(|| unreachable(&"the answer to a checkpoint is empty"))?;
        Ok(SnapshotResponse::new(vote))
    }
}

/// Reads a group's checkpoint, chunk by chunk as they are taken; at once where the disk makes
/// nobody wait, since it is in memory already. A fault is told before the chunks end.
fn read(
    store: &Store,
    group: GroupId,
    turn: OwnedSemaphorePermit,
) -> (BoxStream<'static, Bytes>, oneshot::Receiver<Fault>) {
    let (failed, fault) = oneshot::channel();
    let waits = store.waits();
    let store = store.clone();
    let export = move |send: &mut dyn FnMut(Bytes) -> bool| {
        let _turn = turn;
        if let Err(fault) = store.export(group, referred_payload, send) {
            // Who would hear it may have given up.
            let _ = failed.send(fault);
        }
    };
    if waits {
        let (chunks, taken) = mpsc::channel(1);
        spawn_blocking(move || export(&mut |chunk| chunks.blocking_send(chunk).is_ok()));
        return (ReceiverStream::new(taken).boxed(), fault);
    }
    let mut chunks = Vec::new();
    export(&mut |chunk| {
        chunks.push(chunk);
        true
    });
    (stream::iter(chunks).boxed(), fault)
}

fn chunks(
    head: cluster::CheckpointHead,
    rows: BoxStream<'static, Bytes>,
) -> impl Stream<Item = cluster::CheckpointChunk> + Send {
    let heads = stream::once(std::future::ready(Some(head))).chain(stream::repeat(None));
    heads
        .zip(rows)
        .map(|(head, rows)| cluster::CheckpointChunk { head, rows })
}

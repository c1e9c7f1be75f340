//! The task of a shard, from leadership to leadership.

use std::collections::VecDeque;
use std::time::Duration;

use model::limits::SHARD_WAITING_REQUESTS_MAX;
use model::{GroupId, Term};
use store::Store;
use tokio::sync::{mpsc, watch};
use tracing::{info, warn};

use super::forward::ForwardRequest;
use super::local::LocalShard;
use super::request::Request;
use super::shards::Shards;
use super::shell::{End, Shell, Surroundings};
use crate::catalogue::CatalogueLease;
use crate::clock::Clock;
use crate::metrics::Counts;
use crate::raft::{Core, Leadership, Leading, Stopped};
use crate::registry::RegistryClient;
use crate::stopping::Stopping;

/// How often Raft is made to give a leadership up whose term this task has used up.
const USED_UP_MAX: Duration = Duration::from_millis(500);

/// What a shard's task is made of.
pub(crate) struct Host {
    /// The shard's group.
    pub(crate) core: Core,
    /// The control group, whose state is the catalogue.
    pub(crate) control: Core,
    /// Whether this node's copy of the catalogue may be relied on.
    pub(crate) lease: CatalogueLease,
    pub(crate) registry: RegistryClient,
    /// The other shards.
    pub(crate) shards: Shards,
    /// The node's disk.
    pub(crate) store: Store,
    pub(crate) clock: Clock,
    pub(crate) counts: Counts,
    /// Where dead letters go.
    pub(crate) forwards: mpsc::Sender<ForwardRequest>,
    pub(crate) stopping: Stopping,
    /// How long a frontend that is well takes to open a session again whose way was lost, at most.
    pub(crate) back_within: Duration,
}

/// The shard's handle, and its task, which ends when the node shuts down or the replica stops;
/// with [`Stopped`] when the state can't be read.
///
/// # Panics
/// When the group is not a shard.
pub(crate) fn host(host: Host) -> (LocalShard, impl Future<Output = Result<(), Stopped>> + Send) {
    let (sender, requests) = mpsc::channel(SHARD_WAITING_REQUESTS_MAX);
    let (serving, served) = watch::channel(false);
    let GroupId::Shard(shard) = host.core.group() else {
        panic!("{} is not a shard", host.core.group());
    };
    let local = LocalShard::new(shard, host.core.clone(), sender, served);
    let around = Surroundings {
        shard,
        catalogue: host.control.view().clone(),
        lease: host.lease,
        core: host.core,
        registry: host.registry,
        lives: host.shards.lives(),
        shards: host.shards,
        store: host.store,
        clock: host.clock,
        counts: host.counts,
        requests,
        held: VecDeque::new(),
        forwards: host.forwards,
        serving,
        stopping: host.stopping,
        back_within: host.back_within,
    };
    (local, work(around))
}

async fn work(mut around: Surroundings) -> Result<(), Stopped> {
    let mut leadership = around.core.leadership();
    let mut last = None;
    while let Some(leading) = take_up(&mut around, &mut leadership, last).await {
        // Even a leadership that ended early has used its term: deliveries are counted from one
        // in each, so that a second one would give out the same ids again.
        last = Some(leading.term);
        let (shard, term) = (around.shard, leading.term);
        info!(%shard, %term, "leadership begins");
        around.counts.leadership();
        let end = match Shell::new(&mut around, leading) {
            Ok(shell) => shell.run(&mut leadership).await,
            Err(fault) => End::Fault(fault),
        };
        match end {
            End::Lost | End::NotCommitted => warn!(%shard, %term, ?end, "leadership ends"),
            End::Closed => return Ok(()),
            // The state is not what it must be: this replica must serve nobody any more.
            End::Fault(fault) => return Err(around.core.stopped(fault)),
        }
    }
    Ok(())
}

/// Waits for a leadership in a term after `last`. Raft may go on leading in that one, as after a
/// moment without a majority, in which it took no proposals; then it is made to give it up, since
/// whoever asked this leader would wait for ever.
async fn begins(core: &Core, leadership: &mut Leadership, last: Option<Term>) -> Option<Leading> {
    loop {
        if last.is_some_and(|last| leadership.leads_in(last)) {
            core.abdicate().await.ok()?;
        }
        tokio::select! {
            leading = leadership.begins(last) => return leading,
            () = tokio::time::sleep(USED_UP_MAX) => {}
        }
    }
}

/// Waits for a leadership in a term after `last`. Whoever calls meanwhile is refused, unless this
/// node is elected already: then its calls are the first that the leadership takes. `None` when the
/// node shuts down or the replica has stopped.
async fn take_up(
    around: &mut Surroundings,
    leadership: &mut Leadership,
    last: Option<Term>,
) -> Option<Leading> {
    let mut lease = around.lease.clone();
    let core = around.core.clone();
    let ready = std::pin::pin!(async {
        let leading = begins(&core, leadership, last).await?;
        // To compare with an old catalogue would be to detach what was just attached.
        lease.begins().await?;
        Some(leading)
    });
    let leading = hold_calls(around, ready).await;
    if leading.is_none() {
        around.requests.close();
        while let Some(request) = around.requests.recv().await {
            around.held.push_back(request);
        }
        refuse_held(around);
    }
    leading
}

async fn hold_calls(
    around: &mut Surroundings,
    mut ready: impl Future<Output = Option<Leading>> + Unpin,
) -> Option<Leading> {
    let core = around.core.clone();
    loop {
        let elected = core.leader() == Some(core.node());
        if !elected {
            refuse_held(around);
        }
        tokio::select! {
            biased;
            () = around.stopping.begun() => return None,
            leading = &mut ready => return leading,
            () = core.leads_no_more(), if elected => {}
            request = around.requests.recv() => match request? {
                // This node's lease may wait for them, and so its leadership. The leadership sees
                // to what they ask for when it begins.
                request @ (Request::Catalogue { .. } | Request::CompareCatalogue { .. }) => {
                    request.refuse(around.shard);
                }
                request if elected && around.held.len() < SHARD_WAITING_REQUESTS_MAX => {
                    around.held.push_back(request);
                }
                request => request.refuse(around.shard),
            }
        }
    }
}

fn refuse_held(around: &mut Surroundings) {
    for request in around.held.drain(..) {
        request.refuse(around.shard);
    }
}

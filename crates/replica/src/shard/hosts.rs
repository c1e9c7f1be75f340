//! The tasks of all shards with a replica on this node. A replica that comes gets its own.

use std::collections::BTreeSet;
use std::time::Duration;

use model::{GroupId, ShardNumber};
use store::Store;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::forward::ForwardRequest;
use super::host::{Host, host};
use super::shards::Shards;
use crate::catalogue::CatalogueLease;
use crate::clock::Clock;
use crate::groups::Groups;
use crate::metrics::Counts;
use crate::raft::{Core, Stopped};
use crate::registry::RegistryClient;
use crate::stopping::Stopping;

/// What the shards of a node work with.
pub(crate) struct Site {
    /// The replicas.
    pub(crate) groups: Groups,
    /// The control group, whose state is the catalogue.
    pub(crate) control: Core,
    /// Whether this node's copy of it may be relied on.
    pub(crate) lease: CatalogueLease,
    /// Who owns which key.
    pub(crate) registry: RegistryClient,
    /// The node's disk.
    pub(crate) store: Store,
    pub(crate) clock: Clock,
    /// What its leaders count.
    pub(crate) counts: Counts,
    /// Where dead letters go.
    pub(crate) forwards: mpsc::Sender<ForwardRequest>,
    pub(crate) stopping: Stopping,
    /// How long a frontend that is well takes to open a session again whose way was lost, at most.
    pub(crate) back_within: Duration,
    /// Where the shards are made known.
    pub(crate) shards: Shards,
}

/// The tasks of shards.
pub(crate) struct Hosts {
    site: Site,
    hosted: BTreeSet<ShardNumber>,
    tasks: JoinSet<Result<(), Stopped>>,
}

impl Hosts {
    /// Hosts the shards whose replicas are open now.
    pub(crate) fn new(site: Site) -> Self {
        site.shards.know(site.registry.clone());
        let mut hosts = Hosts {
            site,
            hosted: BTreeSet::new(),
            tasks: JoinSet::new(),
        };
        hosts.host_new();
        hosts
    }

    /// Hosts those that are opened later, until the node shuts down and every task has ended.
    ///
    /// # Errors
    /// [`Stopped`] when a shard's state can't be read.
    pub(crate) async fn work(mut self) -> Result<(), Stopped> {
        let mut cores = self.site.groups.watch();
        let mut stopping = self.site.stopping.clone();
        loop {
            self.host_new();
            tokio::select! {
                biased;
                () = stopping.begun() => break,
                Some(ended) = self.tasks.join_next() => self.ended(ended)?,
                Ok(()) = cores.changed() => {}
            }
        }
        while let Some(ended) = self.tasks.join_next().await {
            self.ended(ended)?;
        }
        Ok(())
    }

    fn host_new(&mut self) {
        for core in self.site.groups.all().values() {
            let GroupId::Shard(number) = core.group() else {
                continue;
            };
            if self.hosted.insert(number) {
                let (shard, work) = host(Host {
                    core: core.clone(),
                    control: self.site.control.clone(),
                    lease: self.site.lease.clone(),
                    registry: self.site.registry.clone(),
                    shards: self.site.shards.clone(),
                    store: self.site.store.clone(),
                    clock: self.site.clock,
                    counts: self.site.counts.clone(),
                    forwards: self.site.forwards.clone(),
                    stopping: self.site.stopping.clone(),
                    back_within: self.site.back_within,
                });
                self.tasks.spawn(work);
                self.site.shards.host(shard);
            }
        }
    }

    /// A task has ended: because the node shuts down, or because its replica has stopped.
    fn ended(
        &self,
        ended: Result<Result<(), Stopped>, tokio::task::JoinError>,
    ) -> Result<(), Stopped> {
        ended.unwrap_or_else(|panic| Err(self.site.control.stopped(panic)))
    }
}

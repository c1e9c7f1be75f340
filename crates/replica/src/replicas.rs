//! All replicas of a node: founded once, started and stopped together.

use std::collections::BTreeSet;
use std::time::Duration;

use engine::Fault;
use engine::command::{Command, Outcome, Proposal};
use engine::control::{self, Found};
use futures::future::{join_all, select_all};
use model::{GroupId, NodeId};
use store::Store;
use thiserror::Error;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::timeout;
use tracing::{info, warn};

use crate::catalogue;
use crate::clock::Clock;
use crate::control::ControlClient;
use crate::raft::{Core, Stopped};
use crate::settings::Settings;
use crate::shard::{ForwardRequest, Host, ShardClient, host};
use crate::stopping::{Stop, Stopping};

/// Why the replicas of a node were not founded or started.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum StartError {
    /// The store belongs to no cluster yet, or its founding was interrupted.
    #[error("node belongs to no cluster: found one, or join one")]
    NotFounded,
    /// The store belongs to a cluster already.
    #[error("node belongs to a cluster already")]
    AlreadyFounded,
    /// The catalogue names a group that the disk does not hold.
    #[error("{0} is missing on the disk of this node")]
    Missing(GroupId),
    /// A replica can't run.
    #[error(transparent)]
    Stopped(#[from] Stopped),
    /// The disk can't be read.
    #[error(transparent)]
    Fault(#[from] Fault),
}

/// The replicas of a node, at work.
pub struct Replicas {
    control: ControlClient,
    shards: Vec<ShardClient>,
    /// Every group's Raft, the control group's first.
    cores: Vec<Core>,
    settings: Settings,
    store: Store,
    stop: Stop,
    tasks: JoinSet<Result<(), Stopped>>,
}

impl Replicas {
    /// Founds a cluster of this one node. To be called once in the life of a cluster, because
    /// someone asked for it: never because a disk is empty or other nodes are silent.
    ///
    /// An interrupted founding can be repeated.
    ///
    /// # Errors
    /// [`StartError`]
    pub async fn found(
        settings: Settings,
        store: &Store,
        clock: Clock,
        found: Found,
    ) -> Result<(), StartError> {
        let groups = found.groups().filter(|group| is_opened(*group));
        let cores = open_all(settings, store, groups).await?;
        let founded = found_groups(settings.node, clock, found, &cores).await;
        shutdown_all(&cores).await;
        founded
    }

    /// Starts every replica that the disk holds. Dead letters go to `forwards`.
    ///
    /// # Errors
    /// [`StartError`]
    pub async fn start(
        settings: Settings,
        store: Store,
        clock: Clock,
        forwards: mpsc::Sender<ForwardRequest>,
    ) -> Result<Self, StartError> {
        let cores = open_all(settings, &store, store.groups()?).await?;
        if let Err(error) = check_founded(&cores).await {
            shutdown_all(&cores).await;
            return Err(error);
        }
        let (control, shards) = cores.split_first().expect("the control group was founded");
        let stop = Stop::new();
        let mut tasks = JoinSet::new();
        let shards: Vec<ShardClient> = shards
            .iter()
            .map(|core| {
                let (client, work) = host(Host {
                    core: core.clone(),
                    control: control.clone(),
                    store: store.clone(),
                    clock,
                    forwards: forwards.clone(),
                    stopping: stop.ear(),
                });
                tasks.spawn(work);
                client
            })
            .collect();
        let (changes, catalogue) =
            catalogue::catalogue(control.clone(), clock, shards.clone(), stop.ear());
        tasks.spawn(catalogue);
        tasks.spawn(cut_logs(settings.cut_log_every, cores.clone(), stop.ear()));
        Ok(Replicas {
            control: ControlClient::new(control.clone(), changes),
            shards,
            cores,
            settings,
            store,
            stop,
            tasks,
        })
    }

    /// The control group.
    #[must_use]
    pub fn control(&self) -> &ControlClient {
        &self.control
    }

    /// The shards on this node, by number.
    #[must_use]
    pub fn shards(&self) -> &[ShardClient] {
        &self.shards
    }

    /// Waits until a replica stops by itself: its disk fails, or its state is not what it must
    /// be. The node must then exit.
    pub async fn stopped(&mut self) -> Stopped {
        let cores = self.cores.iter().map(|core| Box::pin(core.until_stopped()));
        let tasks = async {
            loop {
                match self.tasks.join_next().await {
                    Some(Ok(Err(stopped))) => return stopped,
                    Some(Err(panic)) => return self.cores[0].stopped(panic),
                    // A task that has nothing to do any more. Its group's Raft says why.
                    Some(Ok(Ok(()))) => {}
                    None => std::future::pending().await,
                }
            }
        };
        tokio::select! {
            (stopped, ..) = select_all(cores) => stopped,
            stopped = tasks => stopped,
        }
    }

    /// Ends all work: takes no more calls, answers those that it took, flushes the state.
    pub async fn shutdown(mut self) {
        self.stop.begin();
        let tasks = &mut self.tasks;
        let drained = async { while tasks.join_next().await.is_some() {} };
        if timeout(self.settings.drain_max, drained).await.is_err() {
            warn!("calls were left unanswered: they took too long");
            self.tasks.shutdown().await;
        }
        shutdown_all(&self.cores).await;
        match self.store.flush_state() {
            Ok(()) => info!("replicas have stopped"),
            // The log has everything: the next start only takes longer.
            Err(fault) => warn!(%fault, "state was not flushed"),
        }
    }
}

/// Opens the replicas of groups, in that order.
async fn open_all(
    settings: Settings,
    store: &Store,
    groups: impl IntoIterator<Item = GroupId>,
) -> Result<Vec<Core>, StartError> {
    let mut cores = Vec::new();
    for group in groups {
        let timing = match group {
            GroupId::Control | GroupId::Registry(_) => settings.control,
            GroupId::Shard(_) => settings.shards,
        };
        match Core::open(group, settings.node, timing, store).await {
            Ok(core) => cores.push(core),
            Err(stopped) => {
                shutdown_all(&cores).await;
                return Err(stopped.into());
            }
        }
    }
    Ok(cores)
}

/// Founds each group that is not founded yet, and last the cluster: with its first command it
/// exists, and not before.
async fn found_groups(
    node: NodeId,
    clock: Clock,
    found: Found,
    cores: &[Core],
) -> Result<(), StartError> {
    for core in cores {
        if !core.exists().await? {
            core.found(BTreeSet::from([node])).await?;
        }
        core.campaign_if_alone().await?;
    }
    // All of them, and not only the one that is written to: a replica that is shut down while it
    // applies its first entry may still be at it when its next start applies the same one.
    for core in cores {
        if core.caught_up().await.is_none() {
            return Err(core.until_stopped().await.into());
        }
    }
    let control = cores.first().expect("a cluster has a control group");
    let command = Command::Control(control::Command::Found(found));
    let entry = Proposal {
        at: clock.wall(),
        commands: vec![command],
    };
    let founded = control.propose(None, entry).await.await;
    match founded.as_deref() {
        Ok([Outcome::Control(founded)]) if founded.reply == control::Reply::Done => Ok(()),
        Ok(_) => Err(StartError::AlreadyFounded),
        Err(_) => Err(control.until_stopped().await.into()),
    }
}

/// Checks that the disk holds a whole node: an empty or torn one must never pass for a new one.
async fn check_founded(cores: &[Core]) -> Result<(), StartError> {
    let Some(control) = cores
        .first()
        .filter(|core| core.group() == GroupId::Control)
    else {
        return Err(StartError::NotFounded);
    };
    if !control.exists().await? {
        return Err(StartError::NotFounded);
    }
    for core in cores {
        core.campaign_if_alone().await?;
    }
    if control.caught_up().await.is_none() {
        return Err(control.until_stopped().await.into());
    }
    let placements = control::read::placements(control.view())?;
    if placements.is_empty() {
        return Err(StartError::NotFounded);
    }
    let groups = placements.iter().map(|placement| placement.group);
    for group in groups.filter(|group| is_opened(*group)) {
        match cores.iter().find(|core| core.group() == group) {
            Some(core) if core.exists().await? => {}
            _ => return Err(StartError::Missing(group)),
        }
    }
    Ok(())
}

/// Whether a node has replicas of the group: nobody asks the registry groups anything yet.
fn is_opened(group: GroupId) -> bool {
    !matches!(group, GroupId::Registry(_))
}

/// Cuts the logs from time to time, until the node shuts down.
async fn cut_logs(
    every: Duration,
    cores: Vec<Core>,
    mut stopping: Stopping,
) -> Result<(), Stopped> {
    let cut = async {
        loop {
            tokio::time::sleep(every).await;
            for core in &cores {
                core.cut_log().await?;
            }
        }
    };
    tokio::select! {
        () = stopping.begun() => Ok(()),
        stopped = cut => stopped,
    }
}

async fn shutdown_all(cores: &[Core]) {
    join_all(cores.iter().map(Core::shutdown)).await;
}

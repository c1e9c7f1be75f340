//! All replicas of a node: founded once, started and stopped together.

use std::collections::BTreeSet;
use std::time::Duration;

use engine::Fault;
use engine::command::{Command, Outcome, Proposal};
use engine::control::{self, Found, Founded, NodeState};
use model::{Boot, FormatLevel, GroupId, NodeId};
use store::Store;
use thiserror::Error;
use tokio::sync::mpsc;
use tokio::time::Instant;
use tonic::service::Routes;
use tracing::{info, warn};

use crate::catalogue::{self, Catalogue, CatalogueLease};
use crate::clock::Clock;
use crate::control::{ControlClient, leader};
use crate::digests::Digests;
use crate::groups::{Groups, RaftService};
use crate::health::Health;
use crate::members;
use crate::metrics::Metrics;
use crate::peer::Peers;
use crate::raft::{Core, Stopped};
use crate::registry::{RegistryClient, sweep};
use crate::session_numbers::SessionNumbers;
use crate::settings::Settings;
use crate::shard::{ForwardRequest, Hosts, Links, Shards, Site};
use crate::stopping::Stopping;
use crate::work::Work;

/// The node that a cluster is founded on.
const FIRST_NODE: NodeId = NodeId(1);

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
    registry: RegistryClient,
    shards: Shards,
    sessions: SessionNumbers,
    groups: Groups,
    health: Health,
    metrics: Metrics,
    digests: Digests,
    settings: Settings,
    store: Store,
    /// The work on shards and members.
    work: Work,
    /// The work on the catalogue, which the other work rests on.
    catalogue_work: Work,
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
        let groups = Groups::new(settings, store.clone(), Peers::none(settings.node));
        let founded = found_groups(&groups, clock, found).await;
        groups.shutdown().await;
        founded
    }

    /// Starts every replica that the disk of a node holds which is a cluster by itself. Dead
    /// letters go to `forwards`. When this returns, the catalogue is current.
    ///
    /// # Errors
    /// [`StartError`]
    pub async fn start(
        settings: Settings,
        store: Store,
        clock: Clock,
        forwards: mpsc::Sender<ForwardRequest>,
    ) -> Result<Self, StartError> {
        let peers = Peers::none(settings.node);
        let groups = Groups::new(settings, store.clone(), peers.clone());
        match open_alone(&groups, &store).await {
            Ok(control) => Ok(Replicas::run(
                groups, control, peers, settings, store, clock, forwards,
            )),
            Err(error) => {
                groups.shutdown().await;
                Err(error)
            }
        }
    }

    /// Starts every replica that the disk of a node of a cluster holds. Other nodes must be able
    /// to call [`Replicas::routes`] from then on: nothing can be decided without them, so that
    /// this waits for nothing; [`Replicas::caught_up`] does.
    ///
    /// The disk of a node that was let into the cluster holds nothing yet. The control group's
    /// leader sends it the catalogue, if this node knows where the others are or they know where
    /// it is.
    ///
    /// # Errors
    /// [`StartError`]
    pub async fn start_among(
        peers: Peers,
        settings: Settings,
        store: Store,
        clock: Clock,
        forwards: mpsc::Sender<ForwardRequest>,
    ) -> Result<Self, StartError> {
        let groups = Groups::new(settings, store.clone(), peers.clone());
        match open_among(&groups, &store).await {
            Ok(control) => Ok(Replicas::run(
                groups, control, peers, settings, store, clock, forwards,
            )),
            Err(error) => {
                groups.shutdown().await;
                Err(error)
            }
        }
    }

    fn run(
        groups: Groups,
        control: Core,
        peers: Peers,
        settings: Settings,
        store: Store,
        clock: Clock,
        forwards: mpsc::Sender<ForwardRequest>,
    ) -> Self {
        let (mut work, mut catalogue_work) = (Work::new(), Work::new());
        let shards = Shards::new(Links::new(peers.clone(), clock.wall().0 / 1_000));
        let (keeper, lease) = catalogue::lease(clock);
        let sessions = SessionNumbers::new(Boot(clock.wall().0));
        let registry = RegistryClient::new(groups.clone(), control.clone(), peers.clone(), clock);
        let metrics = Metrics::new(&groups, &control, &lease, &store, clock);
        let hosts = Hosts::new(Site {
            groups: groups.clone(),
            control: control.clone(),
            registry: registry.clone(),
            lease: lease.clone(),
            store: store.clone(),
            clock,
            counts: metrics.counts(),
            forwards,
            stopping: work.ear(),
            back_within: settings.back_within(),
            shards: shards.clone(),
        });
        work.spawn(hosts.work());
        let (client, leader) = leader(
            control.clone(),
            clock,
            peers.clone(),
            lease.clone(),
            settings.replace_after,
            catalogue_work.ear(),
        );
        catalogue_work.spawn(leader);
        let catalogue = Catalogue {
            control: client.clone(),
            groups: groups.clone(),
            shards: shards.clone(),
            keeper,
            lease: lease.clone(),
            sessions: sessions.clone(),
        };
        catalogue_work.spawn(catalogue.work(catalogue_work.ear()));
        let mut replicas = Replicas {
            control: client,
            registry,
            shards,
            sessions,
            health: Health::new(
                &groups,
                &control,
                &lease,
                &store,
                settings.across.election_max(),
            ),
            digests: Digests::new(groups.clone(), store.clone()),
            groups,
            metrics,
            settings,
            store,
            work,
            catalogue_work,
        };
        replicas.tend(peers, lease, clock);
        replicas
    }

    /// Begins what is done from time to time.
    fn tend(&mut self, peers: Peers, lease: CatalogueLease, clock: Clock) {
        let (groups, shards, work) = (&self.groups, &self.shards, &mut self.work);
        work.spawn(cut_logs(self.settings, groups.clone(), work.ear()));
        let swept = sweep::sweep(groups.clone(), shards.clone(), clock, work.ear());
        work.spawn(swept);
        work.spawn(members::keep(
            groups.clone(),
            self.control.clone(),
            peers,
            shards.clone(),
            lease,
            work.ear(),
        ));
    }

    /// Waits until the catalogue on this node is as new as what any node has answered.
    ///
    /// # Errors
    /// [`Stopped`].
    pub async fn caught_up(&self) -> Result<(), Stopped> {
        let control = self.control.core();
        match control.caught_up().await {
            Some(()) => Ok(()),
            None => Err(control.until_stopped().await),
        }
    }

    /// Hands over what this node leads and others could lead, before it stops. It goes on leading
    /// groups that nobody takes within `patience`.
    ///
    /// # Errors
    /// [`Stopped`].
    pub async fn hand_over(&self, patience: Duration) -> Result<(), Stopped> {
        members::hand_over(&self.groups, self.control.core(), patience).await
    }

    /// Who votes in a group, as far as this node's replica of it knows: one set, or the old and
    /// the new one while the new replaces the old. Nothing where it has no replica.
    #[must_use]
    pub fn voters(&self, group: GroupId) -> Vec<BTreeSet<NodeId>> {
        let core = self.groups.get(group);
        core.map(|core| core.members().voters).unwrap_or_default()
    }

    /// What other nodes may ask of this one: to be served to them by [`crate::peer::serve`].
    #[must_use]
    pub fn routes(&self) -> Routes {
        Routes::new(RaftService::server(self.groups.clone()))
            .add_service(self.shards.service())
            .add_service(self.registry.service())
            .add_service(self.control.service())
    }

    /// What nodes may ask of this one that belong to no cluster yet: to be let in.
    #[must_use]
    pub fn open_routes(&self) -> Routes {
        let cluster = &self.store.identity().cluster;
        Routes::new(self.control.membership(cluster))
    }

    /// Whether this node can serve.
    #[must_use]
    pub fn health(&self) -> &Health {
        &self.health
    }

    /// What is worth watching of this node.
    #[must_use]
    pub fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    /// The control group.
    #[must_use]
    pub fn control(&self) -> &ControlClient {
        &self.control
    }

    /// The registry groups, wherever they are led.
    #[must_use]
    pub fn registry(&self) -> &RegistryClient {
        &self.registry
    }

    /// The shards, wherever they are led.
    #[must_use]
    pub fn shards(&self) -> &Shards {
        &self.shards
    }

    /// How the sessions of clients of this node are numbered.
    #[must_use]
    pub fn sessions(&self) -> &SessionNumbers {
        &self.sessions
    }

    /// What the replicas of this node have come to.
    #[must_use]
    pub fn digests(&self) -> &Digests {
        &self.digests
    }

    /// Resolves when the cluster has removed this node, as far as its catalogue tells.
    pub fn removed(&self) -> impl Future<Output = ()> + Send + use<> {
        let (control, node) = (self.control.clone(), self.groups.node());
        async move {
            let mut applied = control.applied();
            loop {
                applied.borrow_and_update();
                let row = control::read::node(control.view(), node);
                if matches!(row, Ok(Some(row)) if row.state == NodeState::Removed) {
                    return;
                }
                if applied.changed().await.is_err() {
                    // The replica has stopped, which is told elsewhere.
                    std::future::pending::<()>().await;
                }
            }
        }
    }

    /// Waits until a replica stops by itself: its disk fails, or its state is not what it must
    /// be. The node must then exit.
    pub async fn stopped(&mut self) -> Stopped {
        tokio::select! {
            stopped = self.groups.stopped() => stopped,
            stopped = self.work.stopped(self.control.core()) => stopped,
            stopped = self.catalogue_work.stopped(self.control.core()) => stopped,
        }
    }

    /// Ends all work: takes no more calls, answers those that it took, flushes the state.
    pub async fn shutdown(mut self) {
        let until = Instant::now() + self.settings.drain_max;
        self.work.end(until).await;
        // Nothing is proposed by the catalogue any more, so that its lease can be given up.
        self.catalogue_work.end(until).await;
        self.tell_what_it_leads();
        self.groups.shutdown().await;
        match self.store.flush_state() {
            Ok(()) => info!("replicas have stopped"),
            // The log has everything: the next start only takes longer.
            Err(fault) => warn!(%fault, "state was not flushed"),
        }
    }

    /// Says which groups wait for an election once this node is gone, though others vote in them.
    fn tell_what_it_leads(&self) {
        let shared = self.groups.led().into_iter();
        let shared = shared.filter(|led| led.voters.len() > 1);
        let groups: Vec<String> = shared.map(|led| led.group.to_string()).collect();
        if !groups.is_empty() {
            let groups = groups.join(", ");
            warn!(
                groups,
                "stops while it leads: nobody could take over in time"
            );
        }
    }
}

/// Opens every replica of a node that is a cluster by itself, and answers the control group's.
///
/// An empty or torn disk must never pass for a new node.
async fn open_alone(groups: &Groups, store: &Store) -> Result<Core, StartError> {
    let control = open_held(groups, store)
        .await?
        .ok_or(StartError::NotFounded)?;
    if !control.exists().await? {
        return Err(StartError::NotFounded);
    }
    if control.caught_up().await.is_none() {
        return Err(control.until_stopped().await.into());
    }
    check_format(&control)?;
    check_held(groups, &control).await?;
    Ok(control)
}

/// Opens every replica of one node of several, and answers the control group's.
async fn open_among(groups: &Groups, store: &Store) -> Result<Core, StartError> {
    let held = open_held(groups, store).await?;
    let is_empty = match &held {
        Some(control) => !control.exists().await?,
        None => true,
    };
    // The cluster was founded on it, so that its disk can't be one of a node that was let in.
    if is_empty && groups.node() == FIRST_NODE {
        return Err(StartError::NotFounded);
    }
    let control = groups.open(GroupId::Control).await?;
    check_format(&control)?;
    Ok(control)
}

/// Whether this program knows what the cluster writes, as far as this disk says.
fn check_format(control: &Core) -> Result<(), Fault> {
    match control::read::format_level(control.view())? {
        level if level > FormatLevel::KNOWN => Err(Fault::UnknownFormat(level)),
        _ => Ok(()),
    }
}

/// Opens every replica that the disk holds, and answers the control group's if it is among them.
async fn open_held(groups: &Groups, store: &Store) -> Result<Option<Core>, StartError> {
    for group in store.groups()? {
        groups.open(group).await?;
    }
    Ok(groups.get(GroupId::Control))
}

/// Founds each group that is not founded yet, and last the cluster: with its first command it
/// exists, and not before.
async fn found_groups(groups: &Groups, clock: Clock, found: Found) -> Result<(), StartError> {
    let mut cores = Vec::new();
    for group in found.groups() {
        let core = groups.open(group).await?;
        if !core.exists().await? {
            core.found(BTreeSet::from([groups.node()])).await?;
            core.campaign_if_alone().await?;
        }
        cores.push(core);
    }
    // All of them, and not only the one that is written to: a replica that is shut down while it
    // applies its first entry may still be at it when its next start applies the same one.
    for core in &cores {
        let ended = model::sabotage!("founding-ends-early");
        if !ended && core.caught_up().await.is_none() {
            return Err(core.until_stopped().await.into());
        }
    }
    let control = cores.first().expect("a cluster has a control group");
    // With the cluster all its groups exist: an empty replica of one is a loss from then on.
    let exist = cores.iter().map(|core| {
        let group = core.group();
        Command::Control(control::Command::Founded(Founded { group }))
    });
    let found = Command::Control(control::Command::Found(found));
    let entry = Proposal {
        at: clock.wall(),
        commands: std::iter::once(found).chain(exist).collect(),
    };
    let founded = control.propose(None, entry).await.await;
    match founded.as_ref().map(|founded| &founded.outcomes[..]) {
        Ok([Outcome::Control(founded), ..]) if founded.reply == control::Reply::Done => Ok(()),
        Ok(_) => Err(StartError::AlreadyFounded),
        Err(_) => Err(control.until_stopped().await.into()),
    }
}

/// Checks that the disk holds what only this node can have.
async fn check_held(groups: &Groups, control: &Core) -> Result<(), StartError> {
    let placements = control::read::placements(control.view())?;
    if placements.is_empty() {
        return Err(StartError::NotFounded);
    }
    for placement in placements.iter().filter(|placement| placement.founded) {
        match groups.get(placement.group) {
            Some(core) if core.exists().await? => {}
            _ => return Err(StartError::Missing(placement.group)),
        }
    }
    Ok(())
}

/// Cuts the logs from time to time, until the node shuts down.
async fn cut_logs(
    settings: Settings,
    groups: Groups,
    mut stopping: Stopping,
) -> Result<(), Stopped> {
    let cut = async {
        loop {
            tokio::time::sleep(settings.cut_log_every).await;
            for core in groups.all().values() {
                core.cut_log(settings.lag_max).await?;
            }
        }
    };
    tokio::select! {
        () = stopping.begun() => Ok(()),
        stopped = cut => stopped,
    }
}

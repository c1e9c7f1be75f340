//! The groups that have a replica on this node.
//!
//! - [`service`]: how other nodes reach them.

mod service;

pub(crate) use service::RaftService;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use engine::Fault;
use engine::control::read;
use futures::future::{join_all, select_all};
use model::{GroupId, NodeId, SurvivalGoal};
use store::Store;
use tokio::sync::{Mutex, watch};

use crate::control::Led;
use crate::peer::Peers;
use crate::raft::{Core, Exports, Stopped, Timing};
use crate::settings::Settings;

/// All replicas of this node, by group. Clones are the same.
#[derive(Clone)]
pub(crate) struct Groups(Arc<Inner>);

struct Inner {
    settings: Settings,
    store: Store,
    peers: Peers,
    exports: Exports,
    /// Held while one is opened, so that no group is opened twice. False when the node shuts
    /// down: nothing is opened any more.
    open: Mutex<bool>,
    cores: watch::Sender<Cores>,
}

/// The replicas at one moment.
pub(crate) type Cores = Arc<BTreeMap<GroupId, Core>>;

impl Groups {
    /// Holds no replica yet.
    pub(crate) fn new(settings: Settings, store: Store, peers: Peers) -> Self {
        Groups(Arc::new(Inner {
            settings,
            store,
            peers,
            exports: Exports::default(),
            open: Mutex::new(true),
            cores: watch::Sender::default(),
        }))
    }

    /// This node.
    pub(crate) fn node(&self) -> NodeId {
        self.0.settings.node
    }

    /// The groups that this node leads.
    pub(crate) fn led(&self) -> Vec<Led> {
        let led = |core: &Core| {
            let leads = core.leader() == Some(self.node());
            leads.then(|| Led {
                group: core.group(),
                term: core.term(),
                voters: core.voters(),
            })
        };
        self.all().values().filter_map(led).collect()
    }

    /// The replica of a group, if it is open.
    pub(crate) fn get(&self, group: GroupId) -> Option<Core> {
        self.0.cores.borrow().get(&group).cloned()
    }

    /// The replica of a group, opened if it is not yet.
    ///
    /// Where the disk has nothing of the group, the replica is empty. It belongs to no group then:
    /// it votes for others and takes what a leader sends, but never campaigns and never founds.
    ///
    /// # Errors
    /// [`Stopped`] when the disk can't be read, or the node shuts down.
    pub(crate) async fn open(&self, group: GroupId) -> Result<Core, Stopped> {
        let open = self.0.open.lock().await;
        if let Some(core) = self.get(group) {
            return Ok(core);
        }
        if !*open {
            return Err(Stopped {
                group,
                reason: "the node shuts down".to_owned(),
            });
        }
        let Inner {
            store,
            peers,
            exports,
            ..
        } = &*self.0;
        let timing = self.timing(group);
        let timing = timing.map_err(|fault| Stopped {
            group,
            reason: fault.to_string(),
        })?;
        let core = Core::open(group, self.node(), timing, store, peers, exports).await?;
        core.campaign_if_alone().await?;
        self.0.cores.send_modify(|cores| {
            Arc::make_mut(cores).insert(group, core.clone());
        });
        Ok(core)
    }

    /// The timing of a group, by where its voters are. It stays until the node starts again.
    fn timing(&self, group: GroupId) -> Result<Timing, Fault> {
        let Inner {
            settings, store, ..
        } = &*self.0;
        let catalogue = store.view(GroupId::Control)?;
        let Some(placement) = read::placement(&catalogue, group)? else {
            return Ok(settings.across);
        };
        if settings.spreads && placement.goal == SurvivalGoal::Region {
            return Ok(settings.across);
        }
        let mut regions = BTreeSet::new();
        for voter in placement.voters {
            regions.insert(read::node(&catalogue, voter)?.map(|node| node.region));
        }
        Ok(match regions.len() {
            1 => settings.within,
            _ => settings.across,
        })
    }

    /// The replicas, and those that are opened later.
    pub(crate) fn watch(&self) -> watch::Receiver<Cores> {
        self.0.cores.subscribe()
    }

    /// The replicas that are open now.
    pub(crate) fn all(&self) -> Cores {
        self.0.cores.borrow().clone()
    }

    /// Waits until a replica stops by itself, and says why.
    pub(crate) async fn stopped(&self) -> Stopped {
        let mut watched = self.watch();
        loop {
            let cores = watched.borrow_and_update().clone();
            let stopped = cores.values().map(|core| Box::pin(core.until_stopped()));
            let stopped: Vec<_> = stopped.collect();
            let any = async {
                match stopped.is_empty() {
                    true => std::future::pending().await,
                    false => select_all(stopped).await.0,
                }
            };
            tokio::select! {
                stopped = any => return stopped,
                Ok(()) = watched.changed() => {}
            }
        }
    }

    /// Stops all replicas, and opens none any more.
    pub(crate) async fn shutdown(&self) {
        *self.0.open.lock().await = false;
        join_all(self.all().values().map(Core::shutdown)).await;
    }
}

#[cfg(test)]
mod tests;

//! Nodes that come and go while the simulation runs: they join, are sent away, and are replaced.

use model::NodeId;
use tokio::sync::{mpsc, oneshot};

use super::client::{Order, Ordered};
use super::faults::{Fault, Kind};
use super::world::World;

/// Which nodes belong to the cluster.
pub(super) struct Churn {
    places: Vec<Place>,
    orders: mpsc::UnboundedSender<Ordered>,
}

/// What a node is to the cluster.
enum Place {
    /// It is none of it, and has no process.
    Away,
    /// It is about to become one of it.
    Coming(Coming),
    /// It is one of it.
    Here,
    /// Its disk is gone: it was this one.
    Lost(Option<NodeId>),
    /// It is about to leave; whether it has is told.
    Leaving(oneshot::Receiver<()>),
}

/// A node that is about to join.
struct Coming {
    /// The fault that it comes with.
    kind: Kind,
    /// Who it was before.
    before: Option<NodeId>,
    /// Whether the operator was told that its name is to be had.
    freed: bool,
}

impl Churn {
    /// The first `here` of so many nodes are there. An operator hears of what is to be done.
    pub(super) fn new(nodes: usize, here: usize, orders: mpsc::UnboundedSender<Ordered>) -> Self {
        let place = |node| match node < here {
            true => Place::Here,
            false => Place::Away,
        };
        Churn {
            places: (0..nodes).map(place).collect(),
            orders,
        }
    }

    fn is_here(&self, node: usize) -> bool {
        matches!(self.places[node], Place::Here)
    }

    fn will_be_here(&self, node: usize) -> bool {
        matches!(self.places[node], Place::Here | Place::Coming(..))
    }

    /// Whether a node has no part in the cluster.
    pub(super) fn is_away(&self, node: usize) -> bool {
        matches!(self.places[node], Place::Away)
    }

    /// Whether no node comes or goes now.
    pub(super) fn is_over(&self) -> bool {
        let mut places = self.places.iter();
        places.all(|place| matches!(place, Place::Here | Place::Away))
    }

    fn order(&self, order: Order) -> oneshot::Receiver<()> {
        let (done, told) = oneshot::channel();
        // The operator is a host that never ends.
        let _ = self.orders.send((order, done));
        told
    }
}

impl World<'_> {
    /// Another node joins in the region of this one, if there is one left.
    pub(super) fn join(&mut self, node: usize) {
        let mut near = self.nodes_near(node).into_iter();
        if let Some(joining) = near.find(|node| self.churn.is_away(*node)) {
            self.churn.places[joining] = Place::Coming(Coming {
                kind: Kind::Join,
                before: None,
                freed: false,
            });
            self.held_down[joining] -= 1;
        }
    }

    /// Which node leaves when one has joined: that one, or the one that the fault names.
    pub(super) fn leaver(&self, fault: &Fault) -> usize {
        let near = self.nodes_near(fault.node).into_iter();
        let newest = near.rev().find(|node| self.churn.is_here(*node));
        match fault.seed % 2 {
            0 => newest.unwrap_or(fault.node),
            _ => fault.node,
        }
    }

    /// A node is sent away, if it can be spared.
    pub(super) fn send_away(&mut self, node: usize) {
        let near = self.nodes_near(node).into_iter();
        let stay = near.filter(|node| self.churn.will_be_here(*node)).count();
        if self.churn.is_here(node) && stay > self.plan.per_region() {
            let name = self.members[node].name().to_owned();
            let told = self.churn.order(Order::SendAway(name));
            self.churn.places[node] = Place::Leaving(told);
        }
    }

    /// The disk of a node is gone, and its process with it.
    pub(super) fn lose_disk(&mut self, node: usize) {
        if self.churn.is_here(node) {
            self.held_down[node] += 1;
            self.churn.places[node] = Place::Lost(self.members[node].id());
            self.silence(node);
            self.members[node].disk().replace();
        }
    }

    /// The node of a lost disk comes again with another one, and the operator says that it is a new
    /// node.
    pub(super) fn replace(&mut self, node: usize) {
        if let Place::Lost(before) = self.churn.places[node] {
            self.held_down[node] -= 1;
            self.churn.places[node] = Place::Coming(Coming {
                kind: Kind::LostDisk,
                before,
                freed: true,
            });
            let name = self.members[node].name().to_owned();
            drop(self.churn.order(Order::Replace(name)));
        }
    }

    /// Sees who has come and who has gone.
    pub(super) fn watch_churn(&mut self) {
        for node in 0..self.members.len() {
            match &mut self.churn.places[node] {
                Place::Coming(coming) => {
                    let now = self.members[node].id();
                    if now.is_some() && now != coming.before {
                        self.tally.is_felt(coming.kind);
                        self.churn.places[node] = Place::Here;
                    } else if self.members[node].was_refused()
                        && !std::mem::replace(&mut coming.freed, true)
                    {
                        // It was let in, and its process ended before it knew.
                        let name = self.members[node].name().to_owned();
                        drop(self.churn.order(Order::Replace(name)));
                    }
                }
                Place::Leaving(told) => {
                    if told.try_recv().is_ok() {
                        self.tally.is_felt(Kind::Leave);
                        self.forget(node);
                    }
                }
                Place::Away | Place::Here | Place::Lost(_) => {}
            }
        }
    }

    /// A node has left for good: its disk is emptied, and it may join again as another one.
    fn forget(&mut self, node: usize) {
        self.churn.places[node] = Place::Away;
        self.held_down[node] += 1;
        self.sim.crash(self.members[node].name());
        self.members[node].disk().replace();
    }

    /// The nodes of the region of a node, itself included.
    fn nodes_near(&self, node: usize) -> Vec<usize> {
        let region = self.members[node].region();
        let nodes = 0..self.members.len();
        nodes
            .filter(|node| self.members[*node].region() == region)
            .collect()
    }
}

//! Who the other nodes are, and the channels to them.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::{Arc, Mutex, PoisonError};

use model::{NodeId, NodeName, RegionName};
use thiserror::Error;
use tonic::transport::{Channel, Endpoint};

use super::line::{Line, Route};
use super::stamp::{PeerChannel, Stamp};
use super::tls::Tls;
use super::{
    CONNECTION_WINDOW_BYTES, KEEPALIVE_EVERY, KEEPALIVE_WAIT, STREAM_WINDOW_BYTES, Settings,
};
use crate::network::Network;

/// The other nodes. Cheap to clone; clones are the same.
#[derive(Clone)]
pub struct Peers(Arc<Inner>);

struct Inner {
    settings: Settings,
    stamp: Stamp,
    book: Mutex<BTreeMap<NodeId, Peer>>,
}

/// Who a node is, and where it listens for its peers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeerAddress {
    /// What its operator calls it.
    pub name: NodeName,
    /// `host:port`. A name is resolved anew each time that the node is dialled.
    pub address: String,
    /// Its region.
    pub region: RegionName,
}

/// What a channel is for. Each use has a connection of its own, so that bulk delays no sign of
/// life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Use {
    /// Raft between replicas.
    Raft,
    /// Calls and sessions of clients, and administration.
    Calls,
    /// Checkpoints.
    Checkpoints,
}

/// *Retry*: this node does not know where the other one is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the address of node {node} is not known")]
pub struct Unreachable {
    /// The node.
    pub node: NodeId,
}

/// One node, with its channels in the order of [`Use`].
struct Peer {
    address: PeerAddress,
    line: Line,
    channels: [Channel; 3],
}

impl Peers {
    /// Knows nobody yet.
    ///
    /// # Panics
    /// When the cluster's id can't stand in a header: it has characters beyond visible ASCII.
    #[must_use]
    pub fn new(settings: Settings) -> Self {
        Peers(Arc::new(Inner {
            stamp: Stamp::new(&settings),
            settings,
            book: Mutex::default(),
        }))
    }

    /// The peers of a node that is a cluster by itself: none.
    #[must_use]
    pub fn none(node: NodeId) -> Self {
        let region = RegionName::parse("alone").expect("a valid name");
        Peers::new(Settings::plain(String::new(), node, region))
    }

    /// What this node says of itself.
    #[must_use]
    pub fn settings(&self) -> &Settings {
        &self.0.settings
    }

    /// Takes down where a node is. Channels to a former address are not given out any more.
    pub fn learn(&self, node: NodeId, address: PeerAddress) {
        if node == self.0.settings.node {
            return;
        }
        let mut book = self.book();
        match book.entry(node) {
            Entry::Occupied(known) if known.get().address == address => {}
            Entry::Occupied(mut known) => {
                known.insert(self.peer(address));
            }
            Entry::Vacant(unknown) => {
                unknown.insert(self.peer(address));
            }
        }
    }

    /// Forgets a node that is not of the cluster any more.
    pub fn forget(&self, node: NodeId) {
        self.book().remove(&node);
    }

    /// A channel to a node. It connects when it is first used, and again after it broke.
    ///
    /// # Errors
    /// [`Unreachable`].
    pub fn channel(&self, node: NodeId, purpose: Use) -> Result<PeerChannel, Unreachable> {
        let book = self.book();
        let peer = book.get(&node).ok_or(Unreachable { node })?;
        let channel = peer.channels[purpose as usize].clone();
        Ok(PeerChannel::new(channel, self.0.stamp.for_node(node)))
    }

    /// A channel to whichever node listens at `host:port`, for a node that knows no other yet.
    #[must_use]
    pub fn channel_at(&self, address: &str) -> PeerChannel {
        let line = Line::new(Route {
            network: self.0.settings.network.clone(),
            address: address.to_owned(),
            name: None,
            one_way: None,
            tls: self.0.settings.tls.clone(),
        });
        PeerChannel::new(channel(&line), self.0.stamp.clone())
    }

    /// The nodes that are known.
    #[must_use]
    pub fn known(&self) -> BTreeMap<NodeId, PeerAddress> {
        let book = self.book();
        let known = book.iter();
        known
            .map(|(node, peer)| (*node, peer.address.clone()))
            .collect()
    }

    /// How often a node was dialled so far.
    #[must_use]
    pub fn dials(&self, node: NodeId) -> u64 {
        self.book().get(&node).map_or(0, |peer| peer.line.dials())
    }

    /// The nodes that could not be reached when they were last dialled, a moment ago, and why.
    #[must_use]
    pub fn silent(&self) -> BTreeMap<NodeName, String> {
        let book = self.book();
        let silent = book.values().filter_map(|peer| {
            let failure = peer.line.failure()?;
            let PeerAddress { name, address, .. } = &peer.address;
            Some((name.clone(), format!("{address}: {failure}")))
        });
        silent.collect()
    }

    /// What a node is called that has this number, as far as is known.
    pub(super) fn name(&self, node: NodeId) -> Option<NodeName> {
        self.book().get(&node).map(|peer| peer.address.name.clone())
    }

    fn peer(&self, address: PeerAddress) -> Peer {
        let settings = &self.0.settings;
        let is_far = address.region != settings.region;
        let line = Line::new(Route {
            network: settings.network.clone(),
            address: address.address.clone(),
            name: Some(address.name.clone()),
            one_way: settings.wan_one_way.filter(|_| is_far),
            tls: settings.tls.clone(),
        });
        Peer {
            address,
            channels: std::array::from_fn(|_| channel(&line)),
            line,
        }
    }

    fn book(&self) -> std::sync::MutexGuard<'_, BTreeMap<NodeId, Peer>> {
        // Every change of the book is whole before anything can panic.
        self.0.book.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A channel to whichever node listens at `host:port`, for one that is of no cluster yet: its calls
/// say nothing of who makes them.
#[must_use]
pub fn channel_of_stranger(network: &Network, address: &str, tls: Option<Tls>) -> Channel {
    channel(&Line::new(Route {
        network: network.clone(),
        address: address.to_owned(),
        name: None,
        one_way: None,
        tls,
    }))
}

fn channel(line: &Line) -> Channel {
    // The name is the line's business: it may be one that is no part of a URI.
    Endpoint::from_static("http://peer")
        .initial_stream_window_size(STREAM_WINDOW_BYTES)
        .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
        .http2_keep_alive_interval(KEEPALIVE_EVERY)
        .keep_alive_timeout(KEEPALIVE_WAIT)
        .keep_alive_while_idle(true)
        .connect_with_connector_lazy(line.clone())
}

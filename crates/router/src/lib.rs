//! The way: which shard, which node, at most two hops.
//!
//! A [`Router`] turns names into incarnations by this node's catalogue, finds the shard of a
//! message, and carries the call to the shard's leader. What clients pull goes through a
//! [`session::Session`], which brings the shards' deliveries together.

pub mod acknowledge;
pub mod credit;
mod dead_letter;
mod pins;
pub mod publish;
mod relocate;
mod resolve;
mod routes;
pub mod session;
mod silence;

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use model::{ClusterSecret, NodeId};
use replica::shard::ForwardRequest;
use replica::{ControlClient, SessionNumbers, Shards};
use tokio::sync::mpsc;

use pins::Pins;
use routes::KnownRoutes;

pub use publish::PublishError;
/// Why a shard did not store a publish, why a group does not answer, and what the catalogue is.
pub use replica::{LookError, StateView, Unavailable, shard::PublishError as ShardError};
pub use resolve::ResolveError;
pub use session::Open;

/// The way from any frontend to the shards. Cheap to clone.
#[derive(Clone)]
pub struct Router {
    inner: Arc<Inner>,
}

struct Inner {
    node: NodeId,
    secret: ClusterSecret,
    control: ControlClient,
    shards: Shards,
    sessions: SessionNumbers,
    unkeyed: AtomicU64,
    pins: Pins,
    routes: KnownRoutes,
}

impl Router {
    /// A router over all shards, by this node's catalogue.
    ///
    /// `sessions` numbers what its clients open.
    #[must_use]
    pub fn new(
        node: NodeId,
        secret: ClusterSecret,
        control: ControlClient,
        shards: Shards,
        sessions: SessionNumbers,
    ) -> Self {
        Router {
            inner: Arc::new(Inner {
                node,
                secret,
                control,
                shards,
                sessions,
                unkeyed: AtomicU64::new(0),
                pins: Pins::default(),
                routes: KnownRoutes::default(),
            }),
        }
    }

    /// The key of the cluster's hashes.
    #[must_use]
    pub fn secret(&self) -> ClusterSecret {
        self.inner.secret
    }

    /// The catalogue, to read and to change.
    #[must_use]
    pub fn control(&self) -> &ControlClient {
        &self.inner.control
    }

    /// All shards, wherever they are led.
    pub(crate) fn shards(&self) -> &Shards {
        &self.inner.shards
    }

    /// Publishes the dead letters that the shards of this node hand over, until they are gone.
    pub async fn forward_dead_letters(self, requests: mpsc::Receiver<ForwardRequest>) {
        dead_letter::forward_all(self, requests).await;
    }
}

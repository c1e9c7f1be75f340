//! This node's catalogue lease: while it lasts, the node's copy of the catalogue lacks nothing
//! that was ever answered, and it may resolve names and serve messages by it.

use tokio::sync::watch;
use tokio::time::Instant;

/// The lease, as everyone on the node sees it. Clones are the same.
#[derive(Clone, Debug)]
pub(crate) struct CatalogueLease(watch::Receiver<Option<Instant>>);

/// Who renews the lease.
pub(crate) struct LeaseKeeper(watch::Sender<Option<Instant>>);

/// A lease that was not granted yet.
pub(crate) fn lease() -> (LeaseKeeper, CatalogueLease) {
    let (sender, receiver) = watch::channel(None);
    (LeaseKeeper(sender), CatalogueLease(receiver))
}

impl CatalogueLease {
    /// Whether the node has a lease now.
    pub(crate) fn lasts(&self) -> bool {
        ends_later(*self.0.borrow())
    }

    /// Waits until the node has a lease. `None` when it never will, since the node shuts down.
    pub(crate) async fn begins(&mut self) -> Option<()> {
        self.0.wait_for(|until| ends_later(*until)).await.ok()?;
        Some(())
    }
}

impl LeaseKeeper {
    /// The lease lasts until then.
    pub(super) fn renewed(&self, until: Instant) {
        self.0.send_replace(Some(until));
    }

    /// The lease is given up.
    pub(super) fn ended(&self) {
        self.0.send_replace(None);
    }
}

fn ends_later(until: Option<Instant>) -> bool {
    until.is_some_and(|until| Instant::now() < until)
}

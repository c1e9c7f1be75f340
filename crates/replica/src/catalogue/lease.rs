//! This node's catalogue lease: while it lasts, the node's copy of the catalogue lacks nothing
//! that was ever answered, and it may resolve names and serve messages by it.

use std::time::Duration;

use model::Timestamp;
use tokio::sync::watch;

use crate::clock::Clock;

/// The lease, as everyone on the node sees it. Clones are the same.
#[derive(Clone, Debug)]
pub(crate) struct CatalogueLease {
    clock: Clock,
    granted: watch::Receiver<Granted>,
}

/// Who renews the lease.
pub(crate) struct LeaseKeeper(watch::Sender<Granted>);

/// What the control group's leaders have told.
#[derive(Clone, Copy, Debug, Default)]
struct Granted {
    /// When the lease ends, in steady time.
    until: Timestamp,
    /// Up to which entry every change is known to every node that may have a lease. It stays true
    /// when the lease has run out.
    settled: u64,
}

/// A lease that was not granted yet.
pub(crate) fn lease(clock: Clock) -> (LeaseKeeper, CatalogueLease) {
    let (sender, granted) = watch::channel(Granted::default());
    (LeaseKeeper(sender), CatalogueLease { clock, granted })
}

impl CatalogueLease {
    /// By which it runs out.
    pub(super) fn clock(&self) -> Clock {
        self.clock
    }

    /// Whether the node has a lease now.
    pub(crate) fn lasts(&self) -> bool {
        !self.left().is_zero()
    }

    /// How long the lease lasts from now on, if it is not renewed.
    pub(crate) fn left(&self) -> Duration {
        let until = self.granted.borrow().until;
        until.since(self.clock.steady())
    }

    /// Up to which entry every change is known to every node that may have a lease, as far as
    /// this node has heard.
    pub(crate) fn settled(&self) -> u64 {
        self.granted.borrow().settled
    }

    /// Waits until the node has a lease. `None` when it never will, since the node shuts down.
    pub(crate) async fn begins(&mut self) -> Option<()> {
        let clock = self.clock;
        let lasts = |granted: &Granted| granted.until > clock.steady();
        self.granted.wait_for(lasts).await.ok()?;
        Some(())
    }
}

impl LeaseKeeper {
    /// The lease lasts until then, in steady time.
    pub(super) fn renewed(&self, until: Timestamp) {
        self.0.send_modify(|granted| granted.until = until);
    }

    /// Every change up to this entry is known to everyone.
    pub(super) fn settled(&self, index: u64) {
        self.0
            .send_modify(|granted| granted.settled = granted.settled.max(index));
    }

    /// The lease is given up.
    pub(super) fn ended(&self) {
        self.renewed(Timestamp::ZERO);
    }
}

//! Keeps this node's catalogue lease: asks for it each second, and as soon as there is news of how
//! far the node has come, since a change may wait for just that.

use std::time::Duration;

use model::Boot;
use tokio::sync::watch;
use tokio::time::timeout;
use tracing::{info, warn};

use super::lease::{CatalogueLease, LeaseKeeper};
use crate::control::{ControlClient, Granting, Renewed};
use crate::groups::Groups;
use crate::raft::Stopped;
use crate::session_numbers::SessionNumbers;
use crate::stopping::Stopping;

/// How often the lease is renewed at least.
const RENEWAL_EVERY: Duration = Duration::from_secs(1);
/// A renewal without an answer for this long is asked for again.
const RENEWAL_ANSWER_MAX: Duration = Duration::from_secs(2);
/// A node that stops does not wait longer to give its lease up.
const RELEASE_MAX: Duration = Duration::from_secs(1);
/// The pause after a renewal that was not granted.
const REFUSED_PAUSE: Duration = Duration::from_millis(50);
/// The pause while this node does not know whether all others have what it has: the sooner it
/// does, the less is in doubt if it leads next.
const UNSETTLED_PAUSE: Duration = Duration::from_millis(100);

/// What it takes to keep a lease.
pub(super) struct Keeper {
    pub(super) control: ControlClient,
    pub(super) groups: Groups,
    pub(super) keeper: LeaseKeeper,
    pub(super) lease: CatalogueLease,
    /// Up to which entry this node is complete.
    pub(super) complete: watch::Receiver<u64>,
    /// This life of the node: a later one has a greater number. The wall clock does for that; where
    /// it has gone back, the control group says so, and the life is numbered anew.
    pub(super) life: Boot,
    pub(super) sessions: SessionNumbers,
}

impl Keeper {
    /// Keeps the lease until the node shuts down.
    pub(super) async fn work(mut self, mut stopping: Stopping) -> Result<(), Stopped> {
        tokio::select! {
            () = stopping.begun() => {}
            () = self.renew() => {}
        }
        self.keeper.ended();
        let _ = timeout(RELEASE_MAX, self.control.release(self.life)).await;
        Ok(())
    }

    async fn renew(&mut self) {
        let mut lasted = false;
        loop {
            let (asked, have) = (
                self.lease.clock().steady(),
                *self.complete.borrow_and_update(),
            );
            let renewal = self.control.renew(self.life, have, self.groups.led());
            let pause = match timeout(RENEWAL_ANSWER_MAX, renewal).await {
                Ok(Ok(Renewed { granting, settled })) => {
                    self.keeper.settled(settled);
                    match granting {
                        Granting::Granted(lease) => {
                            self.keeper.renewed(asked.plus(lease));
                            match settled < have {
                                true => UNSETTLED_PAUSE,
                                false => RENEWAL_EVERY,
                            }
                        }
                        Granting::NotNow => REFUSED_PAUSE,
                        Granting::Superseded(later) => {
                            // Nothing was ever granted to this life under its number.
                            let life = Boot(later.0 + 1);
                            self.life = life;
                            self.sessions.begin_at(life);
                            warn!(%life, "the machine's clock has gone back since the last start");
                            REFUSED_PAUSE
                        }
                    }
                }
                Ok(Err(_)) | Err(_) => REFUSED_PAUSE,
            };
            if std::mem::replace(&mut lasted, self.lease.lasts()) != self.lease.lasts() {
                tell(!lasted);
            }
            // The sender lives in the follower's task, which ends only with the node.
            let _ = timeout(pause, self.complete.changed()).await;
        }
    }
}

fn tell(lost: bool) {
    match lost {
        true => warn!("catalogue lease has run out: names are not resolved until it is renewed"),
        false => info!("catalogue lease begins"),
    }
}

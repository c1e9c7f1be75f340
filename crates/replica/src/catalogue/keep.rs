//! Keeps this node's catalogue lease: asks for it each second, and as soon as there is news of how
//! far the node has come, since a change may wait for just that.

use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, timeout};
use tracing::{info, warn};

use super::lease::{CatalogueLease, LeaseKeeper};
use crate::control::ControlClient;
use crate::groups::Groups;
use crate::raft::Stopped;
use crate::stopping::Stopping;

/// How often the lease is renewed at least.
const RENEWAL_EVERY: Duration = Duration::from_secs(1);
/// A renewal without an answer for this long is asked for again.
const RENEWAL_ANSWER_MAX: Duration = Duration::from_secs(2);
/// A node that stops does not wait longer to give its lease up.
const RELEASE_MAX: Duration = Duration::from_millis(500);
/// The pause after a renewal that was not granted.
const RENEWAL_PAUSE: Duration = Duration::from_millis(50);

/// Keeps the lease until the node shuts down.
pub(super) async fn keep(
    control: ControlClient,
    groups: Groups,
    keeper: LeaseKeeper,
    lease: CatalogueLease,
    mut complete: watch::Receiver<u64>,
    mut stopping: Stopping,
) -> Result<(), Stopped> {
    let mut lasted = false;
    let keep = async {
        loop {
            let (asked, have) = (Instant::now(), *complete.borrow_and_update());
            let renewed = timeout(RENEWAL_ANSWER_MAX, control.renew(have, groups.led())).await;
            let granted = matches!(renewed, Ok(Ok(Some(_))));
            if let Ok(Ok(Some(lease))) = renewed {
                keeper.renewed(asked + lease);
            }
            if std::mem::replace(&mut lasted, lease.lasts()) != lease.lasts() {
                tell(!lasted);
            }
            let pause = if granted {
                RENEWAL_EVERY
            } else {
                RENEWAL_PAUSE
            };
            // The sender lives in the follower's task, which ends only with the node.
            let _ = timeout(pause, complete.changed()).await;
        }
    };
    tokio::select! {
        () = stopping.begun() => {}
        () = keep => {}
    }
    keeper.ended();
    let _ = timeout(RELEASE_MAX, control.release()).await;
    Ok(())
}

fn tell(lost: bool) {
    match lost {
        true => warn!("catalogue lease has run out: names are not resolved until it is renewed"),
        false => info!("catalogue lease begins"),
    }
}
